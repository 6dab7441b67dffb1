"""Resolve skills with the same name: which agents have each of them, and which one each agent uses."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial

from django.db.models import CharField, IntegerField, Value

from personas.models import Agent, Workspace
from skills.agent_context.effective import (
    SKILL_RECORD_PATH,
    AgentSkill,
    evaluate_skill_file,
    get_effective_contexts,
    resolve_duplicate_skills,
)
from skills.discovery.agent_search import AgentFile
from skills.models import AssignedTo, ContextFile, FileAgent, Skill, SkillLink
from skills.skill_format.tolerance import get_judging_harnesses
from skills.sources.readers import ContextReader, get_readers_by_agent

SKILL_RECORD, SKILL_FILE, LIVE_AGENT = range(3)
# A pair: SKILL_RECORD or SKILL_FILE, and the id of the record or file.
SkillKey = tuple[int, int]
# By source id: paths of skill files that are not ignored and that exist or have an active revision.
SkillPaths = Mapping[int, Collection[str]]
SkillEvaluator = Callable[[ContextFile], AgentSkill]


@dataclass
class SkillUsage:
    """Number of agents that use a skill, that have it hidden by another of the same name, or that drop it.

    An agent drops a skill that is not valid by the rules of its harness. For the others the skill is valid.
    """

    used: int = 0
    # Number of agents by the location of the skill that hides this one.
    hidden: Counter[str] = field(default_factory=Counter)
    dropped: int = 0
    # Names of the agents for which the skill is valid, and of those that drop it.
    valid_names: list[str] = field(default_factory=list)
    dropped_names: list[str] = field(default_factory=list)

    @property
    def agent_count(self) -> int:
        return self.used + self.hidden.total() + self.dropped

    @property
    def hiding_files(self) -> list[tuple[str, int]]:
        """The path of each skill that hides this one, with the number of agents for which it does.

        The path is empty for a skill record.
        """
        return [
            ("" if location == SKILL_RECORD_PATH else location, count)
            for location, count in sorted(self.hidden.items())
        ]


@dataclass(frozen=True)
class SkillAssignments:
    """The active agents, and for each skill the agents that it is assigned to individually."""

    # Layout and name of each active agent.
    agents: Mapping[int, tuple[str, str]]
    holders: Mapping[SkillKey, frozenset[int]]

    def is_assigned(self, agent_id: int, key: SkillKey) -> bool:
        return agent_id in self.holders.get(key, ())


def count_skill_usage(
    workspace: Workspace, skills: Iterable[Skill], files: Iterable[ContextFile], paths: SkillPaths
) -> dict[SkillKey, SkillUsage]:
    """Count how many active agents use each skill, have it hidden, or drop it, in a fixed number of queries.

    `skills` and `files` must include every skill that shares a name with one of them. Otherwise a skill may
    be counted as used although another skill of the same name hides it.
    """
    skills = sorted(skills, key=lambda row: (row.name, row.pk))
    files = sorted(files, key=lambda row: (row.name, row.pk))
    assignments, readers = get_skill_assignments(workspace), get_readers_by_agent(workspace)
    usage: dict[SkillKey, SkillUsage] = {}
    matches_by_reader: dict[tuple[object, ...], list[AgentFile]] = {}
    # Cached by file and harnesses, because many agents share them.
    evaluate_cached = cache(evaluate_skill_file)
    for agent_id, (layout, name) in sorted(assignments.agents.items()):
        reader = readers.get(agent_id)
        if reader is not None and not reader.row.has_skills:
            continue
        harnesses = get_judging_harnesses(reader.harness.name if reader else "", layout)
        evaluate = partial(evaluate_cached, harnesses=harnesses)
        matches = list_skill_matches(reader, files, paths, matches_by_reader) if reader else []
        candidates = [
            *list_assigned_skills(agent_id, skills, assignments),
            *list_matched_skills(reader, matches, files, evaluate),
        ]
        for skill in resolve_duplicate_skills(
            [*candidates, *list_assigned_skill_files(agent_id, files, assignments, evaluate)]
        ):
            add_to_usage(usage.setdefault(get_skill_key(skill), SkillUsage()), skill, name)
    return usage


def add_to_usage(usage: SkillUsage, skill: AgentSkill, agent_name: str) -> None:
    (usage.dropped_names if skill.dropped else usage.valid_names).append(agent_name)
    if skill.dropped:
        usage.dropped += 1
    elif skill.hidden_by:
        usage.hidden[skill.hidden_by] += 1
    else:
        usage.used += 1


def get_skill_key(agent_skill: AgentSkill) -> SkillKey:
    return (
        (SKILL_RECORD, agent_skill.skill.pk)
        if agent_skill.skill
        else (SKILL_FILE, agent_skill.file.pk if agent_skill.file else 0)
    )


def get_skill_assignments(workspace: Workspace) -> SkillAssignments:
    """Load the active agents and the assignments of skill records and skill files with one UNION query."""
    no_text = Value("", output_field=CharField())

    def number(value: int) -> Value:
        return Value(value, output_field=IntegerField())

    agents = Agent.objects.in_workspace(workspace).filter(archived_at=None)
    skill_links = SkillLink.objects.in_workspace(workspace)
    file_links = FileAgent.objects.in_workspace(workspace)
    rows = agents.values_list(number(LIVE_AGENT), "pk", "pk", "layout", "name").union(
        skill_links.values_list(number(SKILL_RECORD), "skill_id", "agent_id", no_text, no_text),
        file_links.values_list(number(SKILL_FILE), "file_id", "agent_id", no_text, no_text),
        all=True,
    )
    live: dict[int, tuple[str, str]] = {}
    holders: dict[SkillKey, set[int]] = {}
    for kind, owner, agent, layout, name in rows:
        if kind == LIVE_AGENT:
            live[agent] = (layout, name)
        else:
            holders.setdefault((kind, owner), set()).add(agent)
    return SkillAssignments(live, {key: frozenset(agents) for key, agents in holders.items()})


# --- skills of one agent, in the same order as in `ContextLoader.get_context` ----------------------------


def list_assigned_skills(
    agent_id: int, skills: Iterable[Skill], assignments: SkillAssignments
) -> Iterator[AgentSkill]:
    for row in skills:
        if not row.is_archived and (
            row.for_all_agents or assignments.is_assigned(agent_id, (SKILL_RECORD, row.pk))
        ):
            yield AgentSkill(row.name, row.description, row.disable_model_invocation, skill=row)


def list_matched_skills(
    reader: ContextReader | None,
    matches: Iterable[AgentFile],
    files: Iterable[ContextFile],
    evaluate: SkillEvaluator,
) -> Iterator[AgentSkill]:
    if reader is None:
        return
    files_by_path = {
        (row.source_id, row.path): row for row in files if row.assigned_to == AssignedTo.WHERE_FOUND
    }
    for match in matches:
        file = files_by_path.get((match.source, match.path))
        if file is not None and is_file_effective(file):
            yield evaluate(file)


def list_assigned_skill_files(
    agent_id: int,
    files: Iterable[ContextFile],
    assignments: SkillAssignments,
    evaluate: SkillEvaluator,
) -> Iterator[AgentSkill]:
    for row in files:
        is_chosen = row.assigned_to == AssignedTo.SELECTED and assignments.is_assigned(
            agent_id, (SKILL_FILE, row.pk)
        )
        if is_file_effective(row) and (row.assigned_to == AssignedTo.ALL or is_chosen):
            yield evaluate(row)


def is_file_effective(file: ContextFile) -> bool:
    return file.active_id is not None and not file.is_ignored


def list_skill_matches(
    reader: ContextReader,
    files: Iterable[ContextFile],
    paths: SkillPaths,
    cached: dict[tuple[object, ...], list[AgentFile]],
) -> list[AgentFile]:
    """Return the files that match the reader's rules, in rule order.

    The result is stored in `cached`, because it is the same for all agents with the same sources, rules and
    working directory.
    """
    key = reader.match_key
    if key not in cached:
        candidates: dict[int, set[str]] = {pk: set() for pk in reader.source_ids}
        for row in files:
            if row.source_id in candidates and not row.is_ignored:
                candidates[row.source_id].add(row.path)
        # A "first match" rule depends on all paths of the source, not only on the candidates.
        is_first_match = any(
            rule.kind == "skill" and rule.take == "first" for rule in reader.harness.active_rules
        )
        stored = candidates
        if is_first_match:
            stored = {pk: {*candidates[pk], *paths.get(pk, ())} for pk in candidates}
        matches = reader.match_files(stored)
        cached[key] = [one for one in matches if one.kind == "skill" and one.path in candidates[one.source]]
    return cached[key]


@dataclass(frozen=True)
class NameConflicts:
    """Other skills that have the same name as a discovered skill."""

    skills: list[Skill]
    files: list[ContextFile]

    def __bool__(self) -> bool:
        return bool(self.skills or self.files)


def find_name_conflicts(file: ContextFile) -> NameConflicts:
    if file.file_kind != "skill" or not file.name:
        return NameConflicts([], [])
    skills = Skill.objects.in_workspace(file.workspace_id).filter(name=file.name, archived_at=None)
    files = ContextFile.objects.in_workspace(file.workspace_id).filter(file_kind="skill", name=file.name)
    others = files.filter(is_ignored=False, source__archived_at=None).exclude(pk=file.pk)
    return NameConflicts(list(skills), list(others.select_related("source").order_by("source__name", "path")))


def find_effective_skills(name: str, agents: Sequence[Agent]) -> list[tuple[Agent, AgentSkill | None]]:
    """Return each agent with the skill that it uses under this name, or with None if it uses none."""
    if not agents:
        return []
    contexts = get_effective_contexts(agents[0].workspace_id, agents)
    return [
        (
            agent,
            next(
                (skill for skill in contexts[agent.pk].skills if skill.name == name and skill.is_used), None
            ),
        )
        for agent in agents
    ]
