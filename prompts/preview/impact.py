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

from core.text.diff import Line, diff_lines
from personas.models import Agent, Workspace, digest_of
from prompts.assembly.sizes import section_texts
from prompts.builds.compiler import NotBuildable, assembled, tokens_in
from prompts.inputs import Draft, Gathered, Loaded, Shelf
from prompts.models import AgentPrompt, BuildCause, PromptVersion
from prompts.versions.diff import common_length
from prompts.versions.segments import digests_in, unpacked
from prompts.versions.selectors import contents_of

# Beyond this a section is shown as replaced: nobody reads such a diff line by line.
LONGEST_DIFF = 200_000
Sections = dict[str, str]


@dataclass(frozen=True)
class Affected:
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
class Change:
    """One section's words before and after."""

    section: str
    before: str
    after: str

    @property
    def lines(self) -> list[Line]:
        if len(self.before) + len(self.after) > LONGEST_DIFF:
            return []
        return diff_lines(self.before, self.after)


@dataclass
class Group:
    """Prompts in which the same words change in the same way: shown once."""

    changes: tuple[Change, ...]
    affected: list[Affected] = field(default_factory=list)


@dataclass
class Impact:
    """The answer, for a page, a program and a reviewer alike."""

    groups: list[Group] = field(default_factory=list)
    unchanged: int = 0
    new: list[tuple[Agent, str]] = field(default_factory=list)
    gone: list[AgentPrompt] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def affected(self) -> list[Affected]:
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
    def over_budget(self) -> list[Affected]:
        return [one for one in self.affected if one.over_budget]


def impact_of(
    workspace: Workspace | int,
    draft: Draft,
    agents: "QuerySet[Agent, int] | Iterable[int]",
    *,
    at: datetime | None = None,
) -> Impact:
    """Assemble every prompt the draft would touch and hold it against the latest version."""
    ids, prompts = touched_now(workspace, agents)
    stored = latest_words(workspace, prompts)
    impact, seen = Impact(), set()
    groups: dict[tuple[Any, ...], Group] = {}
    for gathered in Shelf(loaded_for(workspace, ids, prompts), at or timezone.now(), draft).all():
        pair = gathered.agent.pk, gathered.channel.pk
        seen.add(pair)
        judge(impact, groups, gathered, stored.get(pair))
    impact.gone = [words.prompt for pair, words in stored.items() if pair not in seen]
    impact.groups = sorted(groups.values(), key=lambda group: -len(group.affected))
    return impact


def touched_now(
    workspace: Workspace | int, agents: "QuerySet[Agent, int] | Iterable[int]"
) -> tuple[list[int], list[AgentPrompt]]:
    """The ids of these agents, and their prompts."""
    ids = sorted(set(agents))
    return ids, list(live_prompts(workspace, ids))


def live_prompts(
    workspace: Workspace | int, agents: "QuerySet[Agent, int] | Sequence[int]"
) -> QuerySet[AgentPrompt]:
    """Built or not, each with whether something waits for its agent."""
    causes = BuildCause.objects.in_workspace(workspace).filter(agent=OuterRef("agent"))
    rows = AgentPrompt.objects.in_workspace(workspace).filter(agent__in=agents, is_live=True)
    rows = rows.annotate(is_waiting=Exists(causes)).select_related("agent", "channel", "latest")
    return rows.order_by("agent", "pk")


def loaded_for(workspace: Workspace | int, ids: Sequence[int], prompts: Sequence[AgentPrompt]) -> Loaded:
    """Where nothing waits to be built, the prompts say on which channels each agent speaks."""
    loaded = Loaded(workspace, ids, is_stocked=True)
    if {prompt.agent_id for prompt in prompts} == set(ids) and not any(map(is_waiting, prompts)):
        loaded.channels = defaultdict(list)
        for prompt in prompts:
            loaded.channels[prompt.agent_id].append(prompt.channel)
    return loaded


def is_waiting(prompt: AgentPrompt) -> bool:
    return bool(getattr(prompt, "is_waiting", True))


@dataclass(frozen=True)
class Words:
    """What the latest version of a prompt says, section by section."""

    prompt: AgentPrompt
    version: PromptVersion
    sections: Sections
    problems: frozenset[str]

    @property
    def text(self) -> str:
        return "".join(self.sections.values())


def latest_words(workspace: Workspace | int, prompts: Iterable[AgentPrompt]) -> dict[tuple[int, int], Words]:
    """One query for every content once."""
    versions = [(prompt, prompt.latest) for prompt in prompts if prompt.latest]
    digests = {digest for _, version in versions for digest in digests_in(version.segments)}
    contents = contents_of(workspace, digests | {version.report for _, version in versions})
    return {
        (prompt.agent_id, prompt.channel_id): Words(
            prompt,
            version,
            section_texts(unpacked(version.segments, contents)),
            frozenset(json.loads(contents[version.report] or b"{}").get("problems", ())),
        )
        for prompt, version in versions
    }


def judge(
    impact: Impact, groups: dict[tuple[Any, ...], Group], gathered: Gathered, words: Words | None
) -> None:
    try:
        prompt = assembled(gathered)
    except NotBuildable as error:
        impact.problems.append(f"{gathered.agent} · {gathered.channel}: {error}")
        return
    if words is None:
        impact.new.append((gathered.agent, str(gathered.channel)))
        return
    if digest_of(prompt.text.encode()) == words.version.text_digest:
        impact.unchanged += 1
        return
    after = section_texts(prompt.segments)
    changes = changes_between(words.sections, after)
    fresh = [problem for problem in prompt.report.problems if problem not in words.problems]
    impact.problems += [f"{gathered.agent} · {gathered.channel}: {problem}" for problem in fresh]
    key = tuple(
        [
            (change.section, digest_of(change.before.encode()), digest_of(change.after.encode()))
            for change in changes
        ]
    )
    groups.setdefault(key, Group(changes)).affected.append(affected_by(gathered, words, after, prompt.text))


def changes_between(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Change, ...]:
    """In the order of the new text; what fell away comes last."""
    order = [*after, *(section for section in before if section not in after)]
    pairs = [(section, before.get(section, ""), after.get(section, "")) for section in order]
    return tuple([Change(*pair) for pair in pairs if pair[1] != pair[2]])


def affected_by(gathered: Gathered, words: Words, after: Sections, text: str) -> Affected:
    sizes = words.version.sizes
    counts = [
        (
            said,
            sizes[section][1]
            if words.sections.get(section) == said and section in sizes
            else tokens_in(said),
        )
        for section, said in after.items()
    ]
    total = sum(tokens for _said, tokens in counts)
    kept = common_length(words.text, text)
    budget = gathered.token_budget
    over = over_budget(total, budget) if budget is not None and total > budget else ""
    return Affected(
        words.prompt,
        gathered.agent,
        str(gathered.channel),
        words.version.tokens,
        total,
        kept,
        tokens_behind(counts, kept),
        over,
    )


def over_budget(tokens: int, budget: int) -> str:
    return _("%(tokens)s of %(budget)s tokens") % {"tokens": f"{tokens:,}", "budget": f"{budget:,}"}


def tokens_behind(counts: Sequence[tuple[str, int]], offset: int) -> int:
    """Tokens of the text from an offset on, by sections; the one it falls into is counted exactly."""
    at, tokens = 0, 0
    for text, count in counts:
        end = at + len(text)
        if at >= offset:
            tokens += count
        elif end > offset:
            tokens += tokens_in(text[offset - at :])
        at = end
    return tokens
