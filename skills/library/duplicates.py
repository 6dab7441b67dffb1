"""Which agents have which skills, and which of several with one name each of them uses."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from django.db.models import IntegerField, Value

from personas.models import Agent, Workspace
from skills.agent_context.effective import WRITTEN_HERE, SkillInUse, given_to_all, judged_skill, resolved
from skills.models import ContextFile, FileAgent, Reach, Skill, SkillLink
from skills.sources.readers import Outlook, outlooks_of

WRITTEN, FOUND, LIVE = range(3)
# A skill written here or a found one, by its id.
Key = tuple[int, int]
# Paths of the skills that a source holds now.
Paths = Mapping[int, Collection[str]]
Judge = Callable[[ContextFile, str], SkillInUse]


@dataclass
class Standing:
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
        return [("" if place == WRITTEN_HERE else place, n) for place, n in sorted(self.hidden.items())]


@dataclass(frozen=True)
class Hands:
    """Live agents, and to whom skills were handed by name."""

    live: frozenset[int]
    holders: Mapping[Key, frozenset[int]]

    def has(self, agent_id: int, key: Key) -> bool:
        return agent_id in self.holders.get(key, ())


def standings(
    workspace: Workspace, skills: Iterable[Skill], files: Iterable[ContextFile], paths: Paths
) -> dict[Key, Standing]:
    """Of these skills, all of one name or another; four queries, however many there are.

    Whoever is asked for must come with all its namesakes, or it may seem to win where it does not.
    """
    skills = sorted(skills, key=lambda row: (row.name, row.pk))
    files = sorted(files, key=lambda row: (row.name, row.pk))
    hands, outlooks = hands_of(workspace), outlooks_of(workspace)
    found: dict[Key, Standing] = {}
    orders: dict[tuple[int, str, str], list[str]] = {}
    # Many agents read by the same rules.
    judge = cache(judged_skill)
    for agent_id in sorted(hands.live):
        outlook = outlooks.get(agent_id)
        order = ordered_paths(outlook, files, paths, orders) if outlook else []
        given = [*written(agent_id, skills, hands), *by_rule(outlook, order, files, judge)]
        for one in resolved([*given, *handed(agent_id, files, hands, outlook, judge)]):
            note(found.setdefault(key_of(one), Standing()), one)
    return found


def note(standing: Standing, one: SkillInUse) -> None:
    if one.dropped:
        standing.dropped += 1
    elif one.hidden_by:
        standing.hidden[one.hidden_by] += 1
    else:
        standing.used += 1


def key_of(one: SkillInUse) -> Key:
    return (WRITTEN, one.skill.pk) if one.skill else (FOUND, one.file.pk if one.file else 0)


def hands_of(workspace: Workspace) -> Hands:
    """One query for three tables of pairs."""

    def number(value: int) -> Value:
        return Value(value, output_field=IntegerField())

    agents = Agent.objects.in_workspace(workspace).filter(archived_at=None)
    written = SkillLink.objects.in_workspace(workspace)
    found = FileAgent.objects.in_workspace(workspace)
    rows = agents.values_list(number(LIVE), "pk", "pk").union(
        written.values_list(number(WRITTEN), "skill_id", "agent_id"),
        found.values_list(number(FOUND), "file_id", "agent_id"),
        all=True,
    )
    live: set[int] = set()
    holders: dict[Key, set[int]] = {}
    for kind, owner, agent in rows:
        if kind == LIVE:
            live.add(agent)
        else:
            holders.setdefault((kind, owner), set()).add(agent)
    return Hands(frozenset(live), {key: frozenset(agents) for key, agents in holders.items()})


# --- what one agent has, in the order that `given_to` has it --------------------------------------------


def written(agent_id: int, skills: Iterable[Skill], hands: Hands) -> Iterator[SkillInUse]:
    for row in skills:
        if not row.is_archived and (row.for_all_agents or hands.has(agent_id, (WRITTEN, row.pk))):
            yield SkillInUse(row.name, row.description, row.disable_model_invocation, skill=row)


def by_rule(
    outlook: Outlook | None, order: Iterable[str], files: Iterable[ContextFile], judge: Judge
) -> Iterator[SkillInUse]:
    if outlook is None:
        return
    here = {row.path: row for row in files if row.source_id == outlook.source.pk and row.reach == Reach.FOUND}
    for path in order:
        if path in here and is_given(here[path]):
            yield judge(here[path], outlook.harness.name)


def handed(
    agent_id: int, files: Iterable[ContextFile], hands: Hands, outlook: Outlook | None, judge: Judge
) -> Iterator[SkillInUse]:
    harness = outlook.harness.name if outlook else "plain"
    for row in files:
        is_chosen = row.reach == Reach.CHOSEN and hands.has(agent_id, (FOUND, row.pk))
        if is_given(row) and (row.reach == Reach.ALL or is_chosen):
            yield judge(row, harness)


def is_given(file: ContextFile) -> bool:
    return file.in_force_id is not None and not file.is_ignored


def ordered_paths(
    outlook: Outlook,
    files: Iterable[ContextFile],
    paths: Paths,
    known: dict[tuple[int, str, str], list[str]],
) -> list[str]:
    """What the agent's rules find of these files, first things first; many agents share one answer."""
    key = (outlook.source.pk, outlook.harness.name, outlook.working_directory)
    if key not in known:
        asked = {row.path for row in files if row.source_id == outlook.source.pk and not row.is_ignored}
        # Where only the first of several places counts, the others must be known as well.
        is_contest = any(rule.kind == "skill" and rule.take == "first" for rule in outlook.harness.live_rules)
        stored = {*asked, *paths.get(outlook.source.pk, ())} if is_contest else asked
        known[key] = [path for kind, path in outlook.paths(stored) if kind == "skill" and path in asked]
    return known[key]


@dataclass(frozen=True)
class Rivals:
    """Others that bear a found skill's name."""

    written: list[Skill]
    found: list[ContextFile]

    def __bool__(self) -> bool:
        return bool(self.written or self.found)


def rivals_of(file: ContextFile) -> Rivals:
    if file.file_kind != "skill" or not file.name:
        return Rivals([], [])
    written = Skill.objects.in_workspace(file.workspace_id).filter(name=file.name, archived_at=None)
    found = ContextFile.objects.in_workspace(file.workspace_id).filter(file_kind="skill", name=file.name)
    others = found.filter(is_ignored=False, source__archived_at=None).exclude(pk=file.pk)
    return Rivals(list(written), list(others.select_related("source").order_by("source__label", "path")))


def winners_of(name: str, agents: Sequence[Agent]) -> list[tuple[Agent, SkillInUse | None]]:
    """For each agent the skill it really gets by that name."""
    if not agents:
        return []
    given = given_to_all(agents[0].workspace_id, agents)
    return [
        (agent, next((one for one in given[agent.pk].skills if one.name == name and one.is_used), None))
        for agent in agents
    ]
