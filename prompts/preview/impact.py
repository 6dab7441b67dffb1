"""What an edit would do before anybody makes it: which prompts, which words, at what cost; only read."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from core.text.diff import DiffLine, diff_lines
from personas.models import Agent, Workspace, sha256_digest
from prompts.assembly.sizes import get_texts_by_section
from prompts.builds.compiler import NotBuildable, assemble_prompt, count_tokens_cached
from prompts.inputs import CollectedInputs, DraftRecord, InputCollector, LoadedRows
from prompts.models import AgentPrompt, BuildCause, PromptVersion
from prompts.versions.diff import count_common_prefix
from prompts.versions.segments import list_content_digests, unpack_segments
from prompts.versions.selectors import get_contents

# Beyond this a section is shown as replaced: nobody reads such a diff line by line.
MAX_DIFF_LENGTH = 200_000
SectionTexts = dict[str, str]


@dataclass(frozen=True)
class AffectedPrompt:
    """One prompt that would change."""

    prompt: AgentPrompt | None
    agent: Agent
    channel: str
    tokens_before: int
    tokens_after: int
    # Where a provider's cache of the old words ends, and what must be sent anew behind it.
    kept_characters: int
    rewritten_tokens: int
    over_budget: str = ""

    @property
    def token_delta(self) -> int:
        return self.tokens_after - self.tokens_before


@dataclass(frozen=True)
class SectionChange:
    """One section's words before and after."""

    section: str
    before: str
    after: str

    @property
    def lines(self) -> list[DiffLine]:
        if len(self.before) + len(self.after) > MAX_DIFF_LENGTH:
            return []
        return diff_lines(self.before, self.after)


@dataclass
class ImpactGroup:
    """Prompts in which the same words change in the same way: shown once."""

    changes: tuple[SectionChange, ...]
    affected: list[AffectedPrompt] = field(default_factory=list)


@dataclass
class Impact:
    """The answer, for a page, a program and a reviewer alike."""

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
    def broken_prefixes(self) -> int:
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
    """Assemble every prompt the draft would touch and hold it against the latest version."""
    ids, prompts = load_affected_prompts(workspace, agents)
    stored = load_latest_texts(workspace, prompts)
    impact, seen = Impact(), set()
    groups: dict[tuple[Any, ...], ImpactGroup] = {}
    for gathered in InputCollector(
        load_impact_rows(workspace, ids, prompts), at or timezone.now(), draft
    ).collect_all():
        pair = gathered.agent.pk, gathered.channel.pk
        seen.add(pair)
        add_prompt_impact(impact, groups, gathered, stored.get(pair))
    impact.gone = [words.prompt for pair, words in stored.items() if pair not in seen]
    impact.groups = sorted(groups.values(), key=lambda group: -len(group.affected))
    return impact


def load_affected_prompts(
    workspace: Workspace | int, agents: "QuerySet[Agent, int] | Iterable[int]"
) -> tuple[list[int], list[AgentPrompt]]:
    """The ids of these agents, and their prompts."""
    ids = sorted(set(agents))
    return ids, list(list_live_prompts(workspace, ids))


def list_live_prompts(
    workspace: Workspace | int, agents: "QuerySet[Agent, int] | Sequence[int]"
) -> QuerySet[AgentPrompt]:
    """Built or not, each with whether something waits for its agent."""
    causes = BuildCause.objects.in_workspace(workspace).filter(agent=OuterRef("agent"))
    rows = AgentPrompt.objects.in_workspace(workspace).filter(agent__in=agents, is_live=True)
    rows = rows.annotate(is_waiting=Exists(causes)).select_related("agent", "channel", "latest")
    return rows.order_by("agent", "pk")


def load_impact_rows(
    workspace: Workspace | int, ids: Sequence[int], prompts: Sequence[AgentPrompt]
) -> LoadedRows:
    """Where nothing waits to be built, the prompts say on which channels each agent speaks."""
    loaded = LoadedRows(workspace, ids, with_skills=True)
    if {prompt.agent_id for prompt in prompts} == set(ids) and not any(map(has_pending_cause, prompts)):
        loaded.channels = defaultdict(list)
        for prompt in prompts:
            loaded.channels[prompt.agent_id].append(prompt.channel)
    return loaded


def has_pending_cause(prompt: AgentPrompt) -> bool:
    return bool(getattr(prompt, "is_waiting", True))


@dataclass(frozen=True)
class LatestText:
    """What the latest version of a prompt says, section by section."""

    prompt: AgentPrompt
    version: PromptVersion
    sections: SectionTexts
    problems: frozenset[str]

    @property
    def text(self) -> str:
        return "".join(self.sections.values())


def load_latest_texts(
    workspace: Workspace | int, prompts: Iterable[AgentPrompt]
) -> dict[tuple[int, int], LatestText]:
    """One query for every content once."""
    versions = [(prompt, prompt.latest) for prompt in prompts if prompt.latest]
    digests = {digest for _, version in versions for digest in list_content_digests(version.segments)}
    contents = get_contents(workspace, digests | {version.report for _, version in versions})
    return {
        (prompt.agent_id, prompt.channel_id): LatestText(
            prompt,
            version,
            get_texts_by_section(unpack_segments(version.segments, contents)),
            frozenset(json.loads(contents[version.report] or b"{}").get("problems", ())),
        )
        for prompt, version in versions
    }


def add_prompt_impact(
    impact: Impact,
    groups: dict[tuple[Any, ...], ImpactGroup],
    gathered: CollectedInputs,
    words: LatestText | None,
) -> None:
    try:
        prompt = assemble_prompt(gathered)
    except NotBuildable as error:
        impact.problems.append(f"{gathered.agent} · {gathered.channel}: {error}")
        return
    if words is None:
        impact.new.append((gathered.agent, str(gathered.channel)))
        return
    if sha256_digest(prompt.text.encode()) == words.version.text_digest:
        impact.unchanged += 1
        return
    after = get_texts_by_section(prompt.segments)
    changes = list_section_changes(words.sections, after)
    fresh = [problem for problem in prompt.report.problems if problem not in words.problems]
    impact.problems += [f"{gathered.agent} · {gathered.channel}: {problem}" for problem in fresh]
    key = tuple(
        [
            (change.section, sha256_digest(change.before.encode()), sha256_digest(change.after.encode()))
            for change in changes
        ]
    )
    groups.setdefault(key, ImpactGroup(changes)).affected.append(
        build_affected_prompt(gathered, words, after, prompt.text)
    )


def list_section_changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[SectionChange, ...]:
    """In the order of the new text; what fell away comes last."""
    order = [*after, *(section for section in before if section not in after)]
    pairs = [(section, before.get(section, ""), after.get(section, "")) for section in order]
    return tuple([SectionChange(*pair) for pair in pairs if pair[1] != pair[2]])


def build_affected_prompt(
    gathered: CollectedInputs, words: LatestText, after: SectionTexts, text: str
) -> AffectedPrompt:
    sizes = words.version.sizes
    counts = [
        (
            said,
            sizes[section][1]
            if words.sections.get(section) == said and section in sizes
            else count_tokens_cached(said),
        )
        for section, said in after.items()
    ]
    total = sum(tokens for _said, tokens in counts)
    kept = count_common_prefix(words.text, text)
    budget = gathered.token_budget
    over = format_over_budget(total, budget) if budget is not None and total > budget else ""
    return AffectedPrompt(
        words.prompt,
        gathered.agent,
        str(gathered.channel),
        words.version.tokens,
        total,
        kept,
        count_tokens_from(counts, kept),
        over,
    )


def format_over_budget(tokens: int, budget: int) -> str:
    return _("%(tokens)s of %(budget)s tokens") % {"tokens": f"{tokens:,}", "budget": f"{budget:,}"}


def count_tokens_from(counts: Sequence[tuple[str, int]], offset: int) -> int:
    """Tokens of the text from an offset on, by sections; the one it falls into is counted exactly."""
    at, tokens = 0, 0
    for text, count in counts:
        end = at + len(text)
        if at >= offset:
            tokens += count
        elif end > offset:
            tokens += count_tokens_cached(text[offset - at :])
        at = end
    return tokens
