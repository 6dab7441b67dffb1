"""Which agents have which skills, and which of several with one name each of them uses."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from django.db.models import IntegerField, Value

from personas.models import Agent, Workspace
from skills.agent_context.effective import (
    SKILL_RECORD_PATH,
    AgentSkill,
    evaluate_skill_file,
    get_effective_contexts,
    resolve_duplicate_skills,
)
from skills.models import ContextFile, FileAgent, Reach, Skill, SkillLink
from skills.sources.readers import SourceReader, get_readers_by_agent

SKILL_RECORD, SKILL_FILE, LIVE_AGENT = range(3)
# A skill written here or a found one, by its id.
SkillKey = tuple[int, int]
# Paths of the skills that a source holds now.
SkillPaths = Mapping[int, Collection[str]]
SkillEvaluator = Callable[[ContextFile, str], AgentSkill]


@dataclass
class SkillUsage:
    """What becomes of one skill, counted over the agents that have it."""

    used: int = 0
    # What stands in its place there.
    hidden: Counter[str] = field(default_factory=Counter)
    dropped: int = 0

    @property
    def holders(self) -> int:
        return self.used + self.hidden.total() + self.dropped

    @property
    def rivals(self) -> list[tuple[str, int]]:
        """The file that hides it, none if it is one written here, and for how many agents."""
        return [("" if place == SKILL_RECORD_PATH else place, n) for place, n in sorted(self.hidden.items())]


@dataclass(frozen=True)
class SkillAssignments:
    """Live agents, and to whom skills were handed by name."""

    live: frozenset[int]
    holders: Mapping[SkillKey, frozenset[int]]

    def has(self, agent_id: int, key: SkillKey) -> bool:
        return agent_id in self.holders.get(key, ())


def count_skill_usage(
    workspace: Workspace, skills: Iterable[Skill], files: Iterable[ContextFile], paths: SkillPaths
) -> dict[SkillKey, SkillUsage]:
    """Of these skills, all of one name or another; four queries, however many there are.

    Whoever is asked for must come with all its namesakes, or it may seem to win where it does not.
    """
    skills = sorted(skills, key=lambda row: (row.name, row.pk))
    files = sorted(files, key=lambda row: (row.name, row.pk))
    hands, outlooks = get_skill_assignments(workspace), get_readers_by_agent(workspace)
    found: dict[SkillKey, SkillUsage] = {}
    orders: dict[tuple[int, str, str], list[str]] = {}
    # Many agents read by the same rules.
    judge = cache(evaluate_skill_file)
    for agent_id in sorted(hands.live):
        outlook = outlooks.get(agent_id)
        order = list_matched_paths(outlook, files, paths, orders) if outlook else []
        given = [
            *list_assigned_skills(agent_id, skills, hands),
            *list_matched_skills(outlook, order, files, judge),
        ]
        for one in resolve_duplicate_skills(
            [*given, *list_assigned_skill_files(agent_id, files, hands, outlook, judge)]
        ):
            add_to_usage(found.setdefault(get_skill_key(one), SkillUsage()), one)
    return found


def add_to_usage(standing: SkillUsage, one: AgentSkill) -> None:
    if one.dropped:
        standing.dropped += 1
    elif one.hidden_by:
        standing.hidden[one.hidden_by] += 1
    else:
        standing.used += 1


def get_skill_key(one: AgentSkill) -> SkillKey:
    return (SKILL_RECORD, one.skill.pk) if one.skill else (SKILL_FILE, one.file.pk if one.file else 0)


def get_skill_assignments(workspace: Workspace) -> SkillAssignments:
    """One query for three tables of pairs."""

    def number(value: int) -> Value:
        return Value(value, output_field=IntegerField())

    agents = Agent.objects.in_workspace(workspace).filter(archived_at=None)
    written = SkillLink.objects.in_workspace(workspace)
    found = FileAgent.objects.in_workspace(workspace)
    rows = agents.values_list(number(LIVE_AGENT), "pk", "pk").union(
        written.values_list(number(SKILL_RECORD), "skill_id", "agent_id"),
        found.values_list(number(SKILL_FILE), "file_id", "agent_id"),
        all=True,
    )
    live: set[int] = set()
    holders: dict[SkillKey, set[int]] = {}
    for kind, owner, agent in rows:
        if kind == LIVE_AGENT:
            live.add(agent)
        else:
            holders.setdefault((kind, owner), set()).add(agent)
    return SkillAssignments(frozenset(live), {key: frozenset(agents) for key, agents in holders.items()})


# --- what one agent has, in the order that `given_to` has it --------------------------------------------


def list_assigned_skills(
    agent_id: int, skills: Iterable[Skill], hands: SkillAssignments
) -> Iterator[AgentSkill]:
    for row in skills:
        if not row.is_archived and (row.for_all_agents or hands.has(agent_id, (SKILL_RECORD, row.pk))):
            yield AgentSkill(row.name, row.description, row.disable_model_invocation, skill=row)


def list_matched_skills(
    outlook: SourceReader | None, order: Iterable[str], files: Iterable[ContextFile], judge: SkillEvaluator
) -> Iterator[AgentSkill]:
    if outlook is None:
        return
    here = {row.path: row for row in files if row.source_id == outlook.source.pk and row.reach == Reach.FOUND}
    for path in order:
        if path in here and is_file_effective(here[path]):
            yield judge(here[path], outlook.harness.name)


def list_assigned_skill_files(
    agent_id: int,
    files: Iterable[ContextFile],
    hands: SkillAssignments,
    outlook: SourceReader | None,
    judge: SkillEvaluator,
) -> Iterator[AgentSkill]:
    harness = outlook.harness.name if outlook else "plain"
    for row in files:
        is_chosen = row.reach == Reach.CHOSEN and hands.has(agent_id, (SKILL_FILE, row.pk))
        if is_file_effective(row) and (row.reach == Reach.ALL or is_chosen):
            yield judge(row, harness)


def is_file_effective(file: ContextFile) -> bool:
    return file.in_force_id is not None and not file.is_ignored


def list_matched_paths(
    outlook: SourceReader,
    files: Iterable[ContextFile],
    paths: SkillPaths,
    known: dict[tuple[int, str, str], list[str]],
) -> list[str]:
    """What the agent's rules find of these files, first things first; many agents share one answer."""
    key = (outlook.source.pk, outlook.harness.name, outlook.working_directory)
    if key not in known:
        asked = {row.path for row in files if row.source_id == outlook.source.pk and not row.is_ignored}
        # Where only the first of several places counts, the others must be known as well.
        is_contest = any(
            rule.kind == "skill" and rule.take == "first" for rule in outlook.harness.active_rules
        )
        stored = {*asked, *paths.get(outlook.source.pk, ())} if is_contest else asked
        known[key] = [path for kind, path in outlook.paths(stored) if kind == "skill" and path in asked]
    return known[key]


@dataclass(frozen=True)
class NameConflicts:
    """Others that bear a found skill's name."""

    written: list[Skill]
    found: list[ContextFile]

    def __bool__(self) -> bool:
        return bool(self.written or self.found)


def find_name_conflicts(file: ContextFile) -> NameConflicts:
    if file.file_kind != "skill" or not file.name:
        return NameConflicts([], [])
    written = Skill.objects.in_workspace(file.workspace_id).filter(name=file.name, archived_at=None)
    found = ContextFile.objects.in_workspace(file.workspace_id).filter(file_kind="skill", name=file.name)
    others = found.filter(is_ignored=False, source__archived_at=None).exclude(pk=file.pk)
    return NameConflicts(
        list(written), list(others.select_related("source").order_by("source__label", "path"))
    )


def find_effective_skills(name: str, agents: Sequence[Agent]) -> list[tuple[Agent, AgentSkill | None]]:
    """For each agent the skill it really gets by that name."""
    if not agents:
        return []
    given = get_effective_contexts(agents[0].workspace_id, agents)
    return [
        (agent, next((one for one in given[agent.pk].skills if one.name == name and one.is_used), None))
        for agent in agents
    ]
