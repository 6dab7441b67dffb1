"""For which agents a discovered skill is valid: each agent judges it by the rules of its own harness."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from django.utils.translation import gettext as _

from core.text.lists import format_list, format_short_list
from personas.models import Agent, Workspace
from skills.agent_context.effective import list_judging_harnesses
from skills.files.evaluate import build_skill_reading
from skills.files.selectors import get_known_paths
from skills.models import AssignedTo, ContextFile, FileAgent, FileRevision
from skills.skill_format.tolerance import evaluate_for_harnesses
from skills.sources.readers import ContextReader, get_readers_by_agent


@dataclass(frozen=True)
class SkillRejection:
    """An agent for which a skill is not valid, the harnesses whose rules decide, and the reasons."""

    agent: Agent
    harnesses: tuple[str, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class SkillValidity:
    """The agents that read a skill: those for which it is valid, and the others with the reasons."""

    valid_agents: Sequence[Agent]
    rejections: Sequence[SkillRejection]

    def describe(self) -> list[str]:
        """Return one sentence on the agents for which the skill is valid, and one for each set of reasons."""
        sentences = []
        if self.valid_agents:
            sentences.append(_("Valid for %(agents)s.") % {"agents": format_agent_names(self.valid_agents)})
        groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Agent]] = defaultdict(list)
        for rejection in self.rejections:
            groups[rejection.harnesses, rejection.reasons].append(rejection.agent)
        for (harnesses, reasons), agents in groups.items():
            values = {
                "agents": format_agent_names(agents),
                "rules": format_list(harnesses),
                "reasons": " ".join(reasons),
            }
            sentences.append(_("Not valid for %(agents)s (%(rules)s rules): %(reasons)s") % values)
        return sentences


def format_agent_names(agents: Iterable[Agent]) -> str:
    return format_short_list([agent.name for agent in agents])


class SkillReaders:
    """The active agents of a workspace, and the skill files that each of them reads."""

    def __init__(
        self,
        workspace: Workspace | int,
        readers: Mapping[int, ContextReader],
        live_paths: Mapping[int, Collection[str]],
    ) -> None:
        """Take the readers of the workspace by agent id, and by source id the paths that rules can match."""
        self.workspace, self.readers, self.live_paths = workspace, readers, live_paths
        self.matched_files: dict[tuple[object, ...], set[tuple[int, str]]] = {}

    @cached_property
    def agents(self) -> list[Agent]:
        agents = Agent.objects.in_workspace(self.workspace).filter(archived_at=None)
        return list(agents.order_by("name", "pk"))

    @cached_property
    def links(self) -> set[tuple[int, int]]:
        return set(FileAgent.objects.in_workspace(self.workspace).values_list("file_id", "agent_id"))

    def list_agents(self, file: ContextFile) -> list[Agent]:
        """List the agents that read the skill, by assignment or because their rules match its path."""
        if file.assigned_to == AssignedTo.ALL:
            return list(self.agents)
        if file.assigned_to == AssignedTo.SELECTED:
            return [agent for agent in self.agents if (file.pk, agent.pk) in self.links]
        readers = [reader for reader in self.readers.values() if reader.agent.archived_at is None]
        agents = [reader.agent for reader in readers if self.is_matched(reader, file)]
        return sorted(agents, key=lambda agent: (agent.name, agent.pk))

    def is_matched(self, reader: ContextReader, file: ContextFile) -> bool:
        """Return whether the reader's rules match the file. A missing file is matched as if it were present.

        Cached, because many agents have the same sources, rules and working directory.
        """
        if file.source_id not in reader.source_ids:
            return False
        missing = "" if file.path in self.live_paths.get(file.source_id, ()) else file.path
        key = (reader.match_key, file.source_id, missing)
        if key not in self.matched_files:
            stored = {pk: set(self.live_paths.get(pk, ())) for pk in reader.source_ids}
            if missing:
                stored[file.source_id].add(missing)
            self.matched_files[key] = {(one.source, one.path) for one in reader.match_files(stored)}
        return (file.source_id, file.path) in self.matched_files[key]

    def judge(self, file: ContextFile, revision: FileRevision) -> SkillValidity:
        """Judge a revision of a skill by the rules of each agent that reads the skill."""
        reading = build_skill_reading(revision.head, revision.problems)
        valid_agents, rejections = [], []
        for agent in self.list_agents(file):
            harnesses = list_judging_harnesses(agent, self.readers.get(agent.pk))
            verdict = evaluate_for_harnesses(reading, harnesses)
            if verdict.kept:
                valid_agents.append(agent)
            else:
                reasons = tuple([problem.message for problem in verdict.reasons])
                rejections.append(SkillRejection(agent, harnesses, reasons))
        return SkillValidity(valid_agents, rejections)


def get_skill_validity(file: ContextFile, revision: FileRevision) -> SkillValidity:
    """Judge a revision of one skill by the rules of each agent that reads the skill."""
    _known_paths, live_paths = get_known_paths(file.workspace_id, {file.source_id})
    readers = get_readers_by_agent(file.workspace_id)
    return SkillReaders(file.workspace_id, readers, live_paths).judge(file, revision)
