"""Review of a change before it is saved or released: numbers, diffs, token cost and approvers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from personas.models import Agent, Membership, ReleasePolicy, User, Workspace
from personas.roles import ROLES_BY_PERMISSION, Permission
from personas.ui.display_names import get_section_name
from personas.ui.navigation import build_url_format
from prompts.publishing.preview.impact import AffectedPrompt, Impact, ImpactGroup, SectionChange
from prompts.publishing.releases.changes import ReleaseChangeGroup, ReleaseChanges
from prompts.publishing.versions.diff import CachePrefix, SectionDiff, SectionStatus
from prompts.publishing.versions.selectors import load_skill_file_texts, load_version_texts
from skills.record_scan import FieldFinding
from skills.scanning import scan_text

# Number of groups that are shown with a diff; further groups only list their prompts.
MAX_DETAILED_DIFFS = 20
MAX_APPROVERS = 6
LAYOUT_TAG_RULE = "section-look-alike"
# In each group of prompts that are new in production, the full texts of this many are shown.
MAX_FIRST_TEXTS = 10


@dataclass(frozen=True)
class ReviewedPrompt:
    """A prompt that a diff applies to."""

    agent: str
    channel: str
    note: str = ""
    url: str = ""
    # The name of the skill file if the text is that of a file; empty for the text of the prompt.
    file: str = ""


@dataclass(frozen=True)
class ReviewDiff:
    """A diff with every prompt it applies to."""

    prompts: Sequence[ReviewedPrompt]
    sections: Sequence[SectionDiff] = ()
    prefix: CachePrefix | None = None
    # No version was in production before, so there is nothing to compare with.
    is_first: bool = False
    is_detailed: bool = True
    # The complete texts of the first MAX_FIRST_TEXTS prompts, if there is nothing to compare them with.
    texts: Sequence[tuple[ReviewedPrompt, str]] = ()

    @property
    def has_more_texts(self) -> bool:
        """Whether there are prompts whose texts are not shown."""
        return len(self.prompts) > MAX_FIRST_TEXTS


@dataclass(frozen=True)
class ChangeReview:
    """The complete review, of an edit or of a release."""

    prompts: int
    agents: int
    diffs: int
    token_delta: int
    invalidated_cache_prefixes: int
    rewritten_tokens: int
    differences: Sequence[ReviewDiff] = ()
    flags: Sequence[FieldFinding] = ()
    # Some prompts were not compared, so broken prefixes and rewritten tokens are lower bounds.
    is_partial: bool = False

    @property
    def summary(self) -> str:
        """Summarise the numbers in one sentence."""
        if not self.prompts:
            return _("No prompts affected")
        agents = format_count(
            ngettext("for %(count)s agent", "for %(count)s agents", self.agents), self.agents
        )
        tokens = _("%(count)s tokens") % {"count": format_delta(self.token_delta)}
        if self.is_first:
            added = ngettext("Adds %(count)s prompt", "Adds %(count)s prompts", self.prompts)
            return f"{format_count(added, self.prompts)} {agents}, {tokens}."
        prompts = ngettext("Changes %(count)s prompt", "Changes %(count)s prompts", self.prompts)
        changes = ngettext("%(count)s unique change", "%(count)s unique changes", self.diffs)
        parts = [
            f"{format_count(prompts, self.prompts)} {agents}",
            format_count(changes, self.diffs),
            tokens,
            self.prefix_summary,
        ]
        return ", ".join(parts) + "."

    @property
    def is_first(self) -> bool:
        """Whether none of the prompts was released before, so that there is nothing to compare with."""
        return (
            bool(self.differences) and not self.is_partial and all(one.is_first for one in self.differences)
        )

    @property
    def prefix_summary(self) -> str:
        count = self.invalidated_cache_prefixes
        text = ngettext("%(count)s cached prefix will change", "%(count)s cached prefixes will change", count)
        return format_count(text, count)


def format_count(text: str, count: int) -> str:
    return text % {"count": f"{count:,}"}


def format_delta(number: int) -> str:
    return f"+{number:,}" if number > 0 else f"−{-number:,}" if number else "±0"


# --- review of an edit ---------------------------------------------------------------------------------


def build_impact_review(impact: Impact, flags: Sequence[FieldFinding] = ()) -> ChangeReview:
    diffs = [
        build_impact_diff(group, is_detailed=index < MAX_DETAILED_DIFFS)
        for index, group in enumerate(impact.groups)
    ]
    return ChangeReview(
        len(impact.affected),
        len(impact.agents),
        len(impact.groups),
        impact.token_delta,
        impact.invalidated_cache_prefixes,
        impact.rewritten_tokens,
        diffs,
        flags,
    )


def build_impact_diff(group: ImpactGroup, *, is_detailed: bool) -> ReviewDiff:
    prompts = [ReviewedPrompt(str(one.agent), one.channel, format_token_delta(one)) for one in group.affected]
    sections = [build_change_diff(change) for change in group.changes] if is_detailed else ()
    return ReviewDiff(prompts, sections, is_detailed=is_detailed)


def format_token_delta(one: AffectedPrompt) -> str:
    return _("%(delta)s tokens") % {"delta": format_delta(one.token_delta)}


def build_change_diff(change: SectionChange) -> SectionDiff:
    """Convert a section change to the type used for diffs of versions, ignoring leading blank lines."""
    before, after = change.before.lstrip("\n"), change.after.lstrip("\n")
    status: SectionStatus = "changed" if before and after else "added" if after else "removed"
    lines = SectionChange(change.section, before, after).lines
    withheld = "" if lines else _("This section is too long to show line by line.")
    return SectionDiff(
        change.section,
        status,
        change.tokens_before,
        change.tokens_after,
        lines,
        withheld=withheld,
        kind=change.kind,
    )


# --- review of a release -------------------------------------------------------------------------------


def build_release_review(
    workspace: Workspace, changes: ReleaseChanges, *, is_stored: bool = True
) -> ChangeReview:
    """Review a release, or with `is_stored=False` versions that are rolled back and have no pages.

    Broken prefixes and rewritten tokens are computed for one prompt per group and multiplied by the number of
    prompts in the group.
    """
    groups = [group for group in changes.groups if group.diff is not None]
    broken = [group for group in groups if has_broken_prefix(group)]
    items = [item for group in changes.groups for item in group.items]
    return ChangeReview(
        changes.count,
        len({item.prompt.agent_id for item in [*items, *changes.uncompared]}),
        len(changes.groups),
        changes.token_delta,
        sum(len(group.items) for group in broken),
        sum(group.diff.prefix.rewritten_tokens * len(group.items) for group in broken if group.diff),
        [build_release_diff(workspace, group, is_stored=is_stored) for group in changes.groups],
        list(scan_release_changes(groups)),
        bool(changes.uncompared) or len(groups) < len([one for one in changes.groups if not one.is_first]),
    )


def has_broken_prefix(group: ReleaseChangeGroup) -> bool:
    prefix = group.diff.prefix if group.diff else None
    return prefix is not None and bool(prefix.section) and not prefix.is_beyond_cache


def build_release_diff(workspace: Workspace, group: ReleaseChangeGroup, *, is_stored: bool) -> ReviewDiff:
    prompts = []
    get_version_url = build_url_format("versions:detail", workspace.slug, count=2)
    get_diff_url = build_url_format("versions:diff", workspace.slug, count=3)
    for item in group.items:
        number, before = item.version.number, item.before
        if before:
            note = f"{before.number} → {number}"
            url = get_diff_url(item.prompt_id, before.number, number)
        else:
            note = _("version %(number)d") % {"number": number}
            url = get_version_url(item.prompt_id, number)
        if not is_stored:
            note, url = format_delta(item.version.tokens - (before.tokens if before else 0)), ""
            note = _("%(delta)s tokens") % {"delta": note}
        prompts.append(ReviewedPrompt(str(item.prompt.agent), str(item.prompt.channel), note, url))
    diff = group.diff
    return ReviewDiff(
        prompts,
        diff.all_changed if diff else (),
        diff.prefix if diff else None,
        group.is_first,
        diff is not None or group.is_first,
        load_first_texts(workspace, group, prompts),
    )


def load_first_texts(
    workspace: Workspace, group: ReleaseChangeGroup, prompts: Sequence[ReviewedPrompt]
) -> list[tuple[ReviewedPrompt, str]]:
    """Return the texts of prompts that were not in production before, so that they can be read here."""
    if not group.is_first:
        return []
    ids = [item.version_id for item in group.items[:MAX_FIRST_TEXTS]]
    texts, files = load_version_texts(workspace, ids), load_skill_file_texts(workspace, ids)
    shown = []
    for prompt, pk in zip(prompts, ids, strict=False):
        shown.append((prompt, texts[pk]))
        shown += [(replace(prompt, file=f"{name}/SKILL.md"), text) for name, text in files[pk].items()]
    return shown


def scan_release_changes(groups: Iterable[ReleaseChangeGroup]) -> Iterable[FieldFinding]:
    """Run the security scanner on the added lines and yield the findings."""
    for group in groups:
        for section in group.diff.all_changed if group.diff else ():
            added = [line.text for line in section.lines if line.kind == "added"]
            for finding in scan_text("\n".join(added), kind="typed") if added else ():
                if finding.rule == LAYOUT_TAG_RULE:
                    # Not reported, because layouts use these tags themselves.
                    continue
                name = section.name if section.is_skill_file else get_section_name(section.name)
                yield FieldFinding(section.name, name, finding)


# --- effect of saving, and approvers -------------------------------------------------------------------


@dataclass(frozen=True)
class SaveEffect:
    """What happens to production when an edit is saved.

    Of the `prompts` that change, `moving` go to production at once; the others wait for a release.
    `reviewed` names the agents whose policy requires a release.
    """

    prompts: int
    moving: int
    reviewed: Sequence[str] = field(default_factory=list)
    # Prompts that wait although the agent's policy releases automatically: a roll-back pinned production.
    pinned: int = 0
    # The number of prompts for which only a custom label moves, and the names of these labels.
    relabelled: int = 0
    labels: Sequence[str] = field(default_factory=list)

    @property
    def changes_production(self) -> bool:
        return self.moving > 0

    @property
    def waiting(self) -> int:
        return self.prompts - self.moving - self.relabelled

    def format_button(self, action: str) -> str:
        """Return the text of the save button, which names the effect."""
        if not self.prompts:
            return _("%(verb)s (no prompts affected)") % {"verb": action}
        count = f"{self.prompts:,}"
        if self.relabelled == self.prompts:
            text = ngettext("%(verb)s (%(count)s prompt)", "%(verb)s (%(count)s prompts)", self.prompts)
            return text % {"verb": action, "count": count}
        if not self.moving:
            text = ngettext(
                "%(verb)s (%(count)s prompt waits for approval)",
                "%(verb)s (%(count)s prompts wait for approval)",
                self.prompts,
            )
            return text % {"verb": action, "count": count}
        if self.moving == self.prompts:
            text = ngettext(
                "%(verb)s and deploy (%(count)s prompt)",
                "%(verb)s and deploy (%(count)s prompts)",
                self.prompts,
            )
            return text % {"verb": action, "count": count}
        return _("%(verb)s and deploy (%(moving)s of %(count)s prompts)") % {
            "verb": action,
            "moving": f"{self.moving:,}",
            "count": count,
        }


def get_save_effect(impact: Impact) -> SaveEffect:
    """Compute the effect by the release policy that each agent would have after saving."""
    kept = {one.agent.pk for one in impact.affected if one.prompt is not None and one.prompt.is_review_kept}
    followers = [one for one in impact.affected if is_auto_released(one.agent) and one.agent.pk not in kept]
    pinned = [one for one in followers if one.prompt is not None and one.prompt.is_pinned]
    new_agents = [agent for agent, _channel in impact.new]
    moving = len(followers) - len(pinned) + sum(is_auto_released(agent) for agent in new_agents)
    agents = {agent.pk: agent for agent in (*impact.agents, *new_agents)}.values()
    names = sorted(str(agent) for agent in agents if agent.pk in kept or not is_auto_released(agent))
    return SaveEffect(len(impact.affected) + len(new_agents), moving, names, len(pinned))


def is_auto_released(agent: Agent) -> bool:
    return agent.release_policy == ReleasePolicy.AUTOMATIC


def list_approvers(workspace: Workspace, exclude: User | None) -> list[Membership]:
    """List members who may approve a release, without `exclude`, the user who requests the approval."""
    roles = list(ROLES_BY_PERMISSION[Permission.APPROVE])
    rows = Membership.objects.in_workspace(workspace).filter(role__in=roles)
    rows = rows.exclude(user=exclude) if exclude else rows
    return list(rows.select_related("user").order_by("user__email")[:MAX_APPROVERS])
