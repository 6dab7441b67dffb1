"""What a person decides on before words change: the numbers, the differences, the price, who must agree."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from personas.models import Agent, Membership, ReleasePolicy, User, Workspace
from personas.roles import ROLES_BY_PERMISSION, Permission
from personas.ui.display_names import get_display_name
from prompts.builds.compiler import count_tokens_cached
from prompts.preview.impact import AffectedPrompt, Impact, ImpactGroup, SectionChange
from prompts.releases.changes import ReleaseChangeGroup as ReleaseGroup
from prompts.releases.changes import ReleaseChanges
from prompts.versions.diff import CachePrefix, SectionDiff, SectionState
from skills.record_scan import FieldFinding
from skills.scanning import scan_text

# Differences that are drawn; the others are told with their prompts.
MAX_DETAILED_DIFFS = 20
MAX_APPROVERS = 6


@dataclass(frozen=True)
class ReviewedPrompt:
    """One prompt that a difference applies to."""

    agent: str
    channel: str
    note: str = ""
    url: str = ""


@dataclass(frozen=True)
class ReviewDiff:
    """The same change of words, once, with every prompt in which it happens."""

    prompts: Sequence[ReviewedPrompt]
    sections: Sequence[SectionDiff] = ()
    prefix: CachePrefix | None = None
    # Nothing to compare with: bots have not been told anything yet.
    is_first: bool = False
    is_drawn: bool = True


@dataclass(frozen=True)
class ChangeReview:
    """All of it, for an edit and for a release alike."""

    prompts: int
    agents: int
    diffs: int
    token_delta: int
    broken_prefixes: int
    rewritten_tokens: int
    differences: Sequence[ReviewDiff] = ()
    flags: Sequence[FieldFinding] = ()
    # Some were too many to be compared, so prefixes and tokens to send anew are a lower bound.
    is_partial: bool = False

    @property
    def sentence(self) -> str:
        """One sentence with the numbers."""
        if not self.prompts:
            return _("Changes no prompt: every one would say what it says now.")
        prompts = ngettext("Changes %(count)s prompt", "Changes %(count)s prompts", self.prompts)
        agents = ngettext("of %(count)s agent", "of %(count)s agents", self.agents)
        said = [
            f"{format_count(prompts, self.prompts)} {format_count(agents, self.agents)}",
            format_count(
                ngettext("%(count)s distinct diff", "%(count)s distinct diffs", self.diffs), self.diffs
            ),
            _("%(count)s tokens") % {"count": format_delta(self.token_delta)},
            self.prefixes,
        ]
        return ", ".join(said) + "."

    @property
    def prefixes(self) -> str:
        count = self.broken_prefixes
        said = ngettext("%(count)s cache prefix broken", "%(count)s cache prefixes broken", count)
        return format_count(said, count)


def format_count(words: str, count: int) -> str:
    return words % {"count": f"{count:,}"}


def format_delta(number: int) -> str:
    return f"+{number:,}" if number > 0 else f"−{-number:,}" if number else "±0"


# --- of an edit ----------------------------------------------------------------------------------------


def build_impact_review(impact: Impact, flags: Sequence[FieldFinding] = ()) -> ChangeReview:
    drawn = [
        build_impact_diff(group, is_drawn=at < MAX_DETAILED_DIFFS) for at, group in enumerate(impact.groups)
    ]
    return ChangeReview(
        len(impact.affected),
        len(impact.agents),
        len(impact.groups),
        impact.token_delta,
        impact.broken_prefixes,
        impact.rewritten_tokens,
        drawn,
        flags,
    )


def build_impact_diff(group: ImpactGroup, *, is_drawn: bool) -> ReviewDiff:
    prompts = [ReviewedPrompt(str(one.agent), one.channel, format_token_delta(one)) for one in group.affected]
    sections = [build_change_diff(change) for change in group.changes] if is_drawn else ()
    return ReviewDiff(prompts, sections, is_drawn=is_drawn)


def format_token_delta(one: AffectedPrompt) -> str:
    return _("%(delta)s tokens") % {"delta": format_delta(one.token_delta)}


def build_change_diff(change: SectionChange) -> SectionDiff:
    """As the difference of two versions is drawn; the gap before a section is not part of it."""
    before, after = change.before.lstrip("\n"), change.after.lstrip("\n")
    state: SectionState = "changed" if before and after else "added" if after else "removed"
    lines = SectionChange(change.section, before, after).lines
    withheld = "" if lines else _("Too long to be shown line by line.")
    return SectionDiff(
        change.section,
        state,
        count_tokens_cached(before),
        count_tokens_cached(after),
        lines,
        withheld=withheld,
    )


# --- of a release --------------------------------------------------------------------------------------


def build_release_review(workspace: Workspace, changes: ReleaseChanges) -> ChangeReview:
    """Prefixes and tokens to send anew are told by one prompt of each group, for all of it."""
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
        [build_release_diff(workspace, group) for group in changes.groups],
        list(scan_release_changes(groups)),
        bool(changes.uncompared) or len(groups) < len([one for one in changes.groups if not one.is_first]),
    )


def has_broken_prefix(group: ReleaseGroup) -> bool:
    prefix = group.diff.prefix if group.diff else None
    return prefix is not None and bool(prefix.section) and not prefix.is_beyond_cache


def build_release_diff(workspace: Workspace, group: ReleaseGroup) -> ReviewDiff:
    prompts = []
    for item in group.items:
        number, before = item.version.number, item.before
        if before:
            place = [workspace.slug, item.prompt_id, before.number, number]
            said, url = f"{before.number} → {number}", reverse("versions:diff", args=place)
        else:
            said = _("version %(number)d") % {"number": number}
            url = reverse("versions:detail", args=[workspace.slug, item.prompt_id, number])
        prompts.append(ReviewedPrompt(str(item.prompt.agent), str(item.prompt.channel), said, url))
    diff = group.diff
    return ReviewDiff(
        prompts,
        diff.changed if diff else (),
        diff.prefix if diff else None,
        group.is_first,
        diff is not None or group.is_first,
    )


def scan_release_changes(groups: Iterable[ReleaseGroup]) -> Iterable[FieldFinding]:
    """What the scanner says of the lines that come in."""
    for group in groups:
        for section in group.diff.changed if group.diff else ():
            added = [line.text for line in section.lines if line.kind == "added"]
            for finding in scan_text("\n".join(added), kind="typed") if added else ():
                yield FieldFinding(section.name, get_display_name(section.name), finding)


# --- what saving does, and who must agree --------------------------------------------------------------


@dataclass(frozen=True)
class SaveEffect:
    """What becomes of the changed prompts once the edit is saved: production at once, or after a release."""

    prompts: int
    moving: int
    reviewed: Sequence[str] = field(default_factory=list)
    # Behind a roll-back production waits for somebody, whatever the agent's policy.
    held: int = 0

    @property
    def is_loud(self) -> bool:
        return self.moving > 0

    @property
    def waiting(self) -> int:
        return self.prompts - self.moving

    def words(self, verb: str) -> str:
        """The button: it names its effect."""
        if not self.prompts:
            return _("%(verb)s: changes no prompt") % {"verb": verb}
        if not self.moving:
            said = ngettext(
                "%(verb)s: %(count)s new version waits for release",
                "%(verb)s: %(count)s new versions wait for release",
                self.prompts,
            )
            return said % {"verb": verb, "count": f"{self.prompts:,}"}
        said = ngettext(
            "%(verb)s: changes %(count)s prompt", "%(verb)s: changes %(count)s prompts", self.prompts
        )
        first = said % {"verb": verb, "count": f"{self.prompts:,}"}
        if self.moving == self.prompts:
            return _("%(first)s in production at once") % {"first": first}
        return _("%(first)s, %(count)s of them in production at once") % {
            "first": first,
            "count": f"{self.moving:,}",
        }


def get_save_effect(impact: Impact) -> SaveEffect:
    """By the policy each agent would have then."""
    followers = [one for one in impact.affected if is_auto_released(one.agent)]
    held = [one for one in followers if one.prompt is not None and one.prompt.is_held]
    fresh = [agent for agent, _channel in impact.new]
    moving = len(followers) - len(held) + sum(is_auto_released(agent) for agent in fresh)
    agents = {agent.pk: agent for agent in (*impact.agents, *fresh)}.values()
    names = sorted(str(agent) for agent in agents if not is_auto_released(agent))
    return SaveEffect(len(impact.affected) + len(fresh), moving, names, len(held))


def is_auto_released(agent: Agent) -> bool:
    return agent.release_policy == ReleasePolicy.AUTOMATIC


def list_approvers(workspace: Workspace, besides: User | None) -> list[Membership]:
    """Those who may approve what this person asks for."""
    rows = Membership.objects.in_workspace(workspace).filter(
        role__in=list(ROLES_BY_PERMISSION[Permission.APPROVE])
    )
    rows = rows.exclude(user=besides) if besides else rows
    return list(rows.select_related("user").order_by("user__email")[:MAX_APPROVERS])
