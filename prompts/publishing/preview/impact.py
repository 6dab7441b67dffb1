"""Compute the impact of an unsaved edit: affected prompts, changed sections and token cost. Read-only."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from core.text.diff import DiffLine, diff_lines
from personas.models import Agent, Workspace, sha256_digest
from prompts.assembly.builder import AssembledPrompt
from prompts.assembly.segments import get_texts_by_section
from prompts.assembly.sizes import get_plain_texts
from prompts.models import AgentPrompt, BuildCause, PromptVersion
from prompts.publishing.builds.compiler import NotBuildable, assemble_prompt, count_tool_tokens
from prompts.publishing.builds.tokens import count_tokens_cached, count_tokens_from
from prompts.publishing.inputs import CollectedInputs, DraftRecord, InputCollector, LoadedRows
from prompts.publishing.versions.diff import DiffKind, count_common_prefix
from prompts.publishing.versions.segments import ERASED_TEXT, list_content_digests
from prompts.publishing.versions.selectors import (
    decode_skill_file,
    get_contents,
    hide_contents,
    list_tombstoned_digests,
)
from prompts.publishing.versions.tool_definitions import (
    DefinitionJson,
    count_definition_tokens,
    format_definition,
    list_definitions_json,
    parse_definitions,
)

# Longer sections are not compared line by line.
MAX_DIFF_LENGTH = 200_000
SectionTexts = dict[str, str]
# The name under which a change of the tool definitions is listed among the changed sections.
TOOL_DEFINITIONS = "tool_definitions"


@dataclass(frozen=True)
class AffectedPrompt:
    """A prompt that would change."""

    prompt: AgentPrompt | None
    agent: Agent
    channel: str
    tokens_before: int
    tokens_after: int
    # Characters at the start that stay the same, so that a provider's prompt cache can reuse them.
    kept_characters: int
    # Tokens of the new text after these characters.
    rewritten_tokens: int
    over_budget: str = ""
    # SHA-256 of the new text.
    text_digest: str = ""

    @property
    def token_delta(self) -> int:
        return self.tokens_after - self.tokens_before


@dataclass(frozen=True)
class SectionChange:
    """The text of a section before and after, with the tokens that a plain fetch sends for it."""

    section: str
    before: str
    after: str
    tokens_before: int = 0
    tokens_after: int = 0
    # For a skill file, `section` is the name of the skill.
    kind: DiffKind = "section"

    @property
    def lines(self) -> list[DiffLine]:
        if len(self.before) + len(self.after) > MAX_DIFF_LENGTH:
            return []
        return diff_lines(self.before, self.after)


@dataclass
class ImpactGroup:
    """Prompts whose text changes in the same way, so that one diff is shown for all of them."""

    changes: tuple[SectionChange, ...]
    affected: list[AffectedPrompt] = field(default_factory=list)


@dataclass
class Impact:
    """Effect of an edit on all prompts, used by pages, the API and the review."""

    groups: list[ImpactGroup] = field(default_factory=list)
    unchanged: int = 0
    new: list[tuple[Agent, str]] = field(default_factory=list)
    gone: list[AgentPrompt] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def affected(self) -> list[AffectedPrompt]:
        return [one for group in self.groups for one in group.affected]

    @property
    def agents(self) -> list[Agent]:
        return list({one.agent.pk: one.agent for one in self.affected}.values())

    @property
    def token_delta(self) -> int:
        return sum(one.token_delta for one in self.affected)

    @property
    def invalidated_cache_prefixes(self) -> int:
        return sum(one.rewritten_tokens > 0 for one in self.affected)

    @property
    def rewritten_tokens(self) -> int:
        return sum(one.rewritten_tokens for one in self.affected)

    @property
    def over_budget(self) -> list[AffectedPrompt]:
        return [one for one in self.affected if one.over_budget]


def compute_impact(
    workspace: Workspace | int,
    draft: DraftRecord,
    agents: "QuerySet[Agent, int] | Iterable[int]",
    *,
    at: datetime | None = None,
) -> Impact:
    """Assemble every prompt that the draft affects and compare it with the latest version."""
    if isinstance(draft.record, Agent) and draft.record._state.adding:
        # No other prompt uses a new agent.
        channels = [channel for channel in draft.channels or () if channel.archived_at is None]
        return Impact(new=[(draft.record, str(channel)) for channel in channels])
    ids, prompts = load_affected_prompts(workspace, agents)
    loaded = load_impact_rows(workspace, ids, prompts)
    stored = load_latest_texts(workspace, prompts)
    impact, pairs = Impact(), set()
    groups: dict[tuple[Any, ...], ImpactGroup] = {}
    for collected in InputCollector(loaded, at or timezone.now(), draft).collect_all():
        pair = collected.agent.pk, collected.channel.pk
        pairs.add(pair)
        add_prompt_impact(impact, groups, collected, stored.get(pair))
    impact.gone = [latest.prompt for pair, latest in stored.items() if pair not in pairs]
    impact.groups = sorted(groups.values(), key=lambda group: -len(group.affected))
    return impact


def load_affected_prompts(
    workspace: Workspace | int, agents: "QuerySet[Agent, int] | Iterable[int]"
) -> tuple[list[int], list[AgentPrompt]]:
    """Return the sorted ids of these agents, and their live prompts."""
    ids = sorted(set(agents))
    workspace_id = workspace if isinstance(workspace, int) else workspace.pk
    return ids, list(list_live_prompts(workspace_id, ids))


def list_live_prompts(workspace: int, agents: Sequence[int]) -> QuerySet[AgentPrompt]:
    """List live prompts, built or not. `is_waiting` tells whether a build of their agent is pending."""
    causes = BuildCause.objects.in_workspace(workspace).filter(agent=OuterRef("agent"))
    rows = AgentPrompt.objects.in_workspace(workspace).filter(agent__in=agents, is_active=True)
    # Agents are not joined: their rows are large, and `load_impact_rows` loads each agent only once.
    rows = rows.select_related("channel", "latest")
    rows = rows.annotate(is_waiting=Exists(causes)).only(
        *("workspace_id", "agent_id", "is_pinned", "is_review_kept"),
        *[f"channel__{name}" for name in ("workspace_id", "slug", "name", "formatting", "revision")],
        "channel__archived_at",
        *[f"latest__{name}" for name in ("workspace_id", "segments", "tools", "report", "tokens", "sizes")],
        "latest__skill_files",
    )
    return rows.order_by("agent", "pk")


def load_impact_rows(
    workspace: Workspace | int, ids: Sequence[int], prompts: Sequence[AgentPrompt]
) -> LoadedRows:
    """Prepare the database rows from which the prompts are assembled.

    If no build is pending, the channels of the agents are those of their prompts, which saves a query.
    """
    loaded = LoadedRows(workspace, ids, with_skills=True)
    if {prompt.agent_id for prompt in prompts} == set(ids) and not any(map(has_pending_cause, prompts)):
        loaded.channels = defaultdict(list)
        for prompt in prompts:
            loaded.channels[prompt.agent_id].append(prompt.channel)
    agents_by_id = {agent.pk: agent for agent in loaded.agents}
    for prompt in prompts:
        if prompt.agent_id in agents_by_id:
            prompt.agent = agents_by_id[prompt.agent_id]
    return loaded


def has_pending_cause(prompt: AgentPrompt) -> bool:
    return bool(getattr(prompt, "is_waiting", True))


@dataclass(frozen=True)
class LatestText:
    """The text of a prompt's latest version by section."""

    prompt: AgentPrompt
    version: PromptVersion
    sections: SectionTexts
    # The build report as it is stored; None if it was erased.
    report: bytes | None
    tools: Sequence[DefinitionJson] = ()
    # The skill files by name.
    skill_files: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return "".join(self.sections.values())

    def list_problems(self) -> list[str]:
        problems: list[str] = json.loads(self.report or b"{}").get("problems", [])
        return problems


def load_latest_texts(
    workspace: Workspace | int, prompts: Iterable[AgentPrompt]
) -> dict[tuple[int, int], LatestText]:
    """Load the texts of the latest versions with one query; content that several share is loaded once."""
    versions = [(prompt, prompt.latest) for prompt in prompts if prompt.latest]
    digests = {
        digest for _, version in versions for digest in list_content_digests(version.segments, version.tools)
    }
    digests |= {row["content"] for _, version in versions for row in version.skill_files}
    contents = get_contents(workspace, digests | {version.report for _, version in versions})
    # Versions share most of their contents, so each content is decoded only once.
    texts = {digest: decode_skill_file(data) for digest, data in contents.items()}
    hidden = list_tombstoned_digests(workspace, [version.segments for _, version in versions])
    return {
        (prompt.agent_id, prompt.channel_id): LatestText(
            prompt,
            version,
            get_stored_texts(version.segments, texts | dict.fromkeys(one, ERASED_TEXT) if one else texts),
            hide_contents(contents, one)[version.report],
            parse_definitions(hide_contents(contents, one).get(version.tools)),
            {row["name"]: texts[row["content"]] for row in version.skill_files},
        )
        for (prompt, version), one in zip(versions, hidden, strict=True)
    }


def get_stored_texts(segments: Iterable[Mapping[str, Any]], texts: Mapping[str, str]) -> SectionTexts:
    """Return the text of each section of a stored version, as `get_texts_by_section` does.

    It reads the rows as they are stored: to restore the segments first takes five times as long.
    """
    texts_by_section: dict[str, list[str]] = {}
    for row in segments:
        text = texts[row["content"]] if "content" in row else row.get("text", "")
        texts_by_section.setdefault(row["section"], []).append(text)
    return {section: "".join(parts) for section, parts in texts_by_section.items() if any(parts)}


def add_prompt_impact(
    impact: Impact,
    groups: dict[tuple[Any, ...], ImpactGroup],
    collected: CollectedInputs,
    latest: LatestText | None,
) -> None:
    try:
        prompt = assemble_prompt(collected)
    except NotBuildable as error:
        impact.problems.append(f"{collected.agent} · {collected.channel}: {error}")
        return
    if latest is None:
        impact.new.append((collected.agent, str(collected.channel)))
        return
    after = get_texts_by_section(prompt.segments)
    tool_changes = list_tool_changes(latest.tools, list_definitions_json(prompt.tools))
    file_changes = list_skill_file_changes(latest, collected)
    is_same = list(after.items()) == list(latest.sections.items())
    if is_same and not tool_changes and not file_changes:
        impact.unchanged += 1
        return
    changes = list_section_changes(latest.sections, after) + tool_changes + file_changes
    known_problems = latest.list_problems() if prompt.report.problems else []
    new_problems = [problem for problem in prompt.report.problems if problem not in known_problems]
    impact.problems += [f"{collected.agent} · {collected.channel}: {problem}" for problem in new_problems]
    key = tuple(
        [
            (
                change.kind,
                change.section,
                sha256_digest(change.before.encode()),
                sha256_digest(change.after.encode()),
            )
            for change in changes
        ]
    )
    counts = count_section_tokens(latest, after, get_plain_texts(prompt.segments))
    if key not in groups:
        groups[key] = ImpactGroup(measure_changes(changes, latest, counts, prompt))
    groups[key].affected.append(build_affected_prompt(collected, latest, after, counts, prompt))


def measure_changes(
    changes: Iterable[SectionChange],
    latest: LatestText,
    counts: Mapping[str, int],
    prompt: AssembledPrompt,
) -> tuple[SectionChange, ...]:
    """Add the tokens of each section as versions count them, so that they add up to those of the prompt."""
    before = {section: size[1] for section, size in latest.version.sizes.items()}
    before[TOOL_DEFINITIONS] = count_definition_tokens(latest.tools, count_tokens_cached)
    after = {**counts, TOOL_DEFINITIONS: count_tool_tokens(prompt.tools)}
    return tuple(
        [
            replace(
                change,
                tokens_before=before.get(change.section, 0),
                tokens_after=after.get(change.section, 0),
            )
            if change.kind != "skill_file"
            else change
            for change in changes
        ]
    )


def list_section_changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[SectionChange, ...]:
    """List changed sections in the order of the new text; removed sections come last."""
    order = [*after, *(section for section in before if section not in after)]
    pairs = [(section, before.get(section, ""), after.get(section, "")) for section in order]
    return tuple([SectionChange(*pair) for pair in pairs if pair[1] != pair[2]])


def list_tool_changes(
    before: Sequence[DefinitionJson], after: Sequence[DefinitionJson]
) -> tuple[SectionChange, ...]:
    """Return the change of the tool definitions, which are sent with the text; empty if there is none."""
    old, new = ("\n".join(map(format_definition, definitions)) for definitions in (before, after))
    return () if old == new else (SectionChange(TOOL_DEFINITIONS, old, new),)


def list_skill_file_changes(latest: LatestText, collected: CollectedInputs) -> tuple[SectionChange, ...]:
    """Return the changes of the skill files, which bots read separately from the text."""
    after = {file.name: decode_skill_file(file.data) for file in collected.skill_files}
    changes = list_section_changes(latest.skill_files, after)
    return tuple([replace(change, kind="skill_file") for change in changes])


def build_affected_prompt(
    collected: CollectedInputs,
    latest: LatestText,
    after: SectionTexts,
    counts: Mapping[str, int],
    prompt: AssembledPrompt,
) -> AffectedPrompt:
    total = sum(counts.values()) + count_tool_tokens(prompt.tools)
    kept = count_common_prefix(latest.text, prompt.text)
    budget = collected.token_budget
    over = format_over_budget(total, budget) if budget is not None and total > budget else ""
    return AffectedPrompt(
        latest.prompt,
        collected.agent,
        str(collected.channel),
        latest.version.tokens,
        total,
        kept,
        count_tokens_from([(text, counts[section]) for section, text in after.items()], kept),
        over,
        sha256_digest(prompt.text.encode()),
    )


def count_section_tokens(latest: LatestText, after: SectionTexts, sent: SectionTexts) -> dict[str, int]:
    """Return the tokens that a plain fetch sends for each section.

    The stored count of an unchanged section without slots is reused: counting is slow.
    """
    sizes = latest.version.sizes
    counts = {}
    for section, text in after.items():
        sent_text = sent.get(section, "")
        is_counted = section in sizes and latest.sections.get(section) == text == sent_text
        counts[section] = sizes[section][1] if is_counted else count_tokens_cached(sent_text)
    return counts


def format_over_budget(tokens: int, budget: int) -> str:
    return _("%(tokens)s of %(budget)s tokens") % {"tokens": f"{tokens:,}", "budget": f"{budget:,}"}
