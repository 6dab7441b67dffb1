"""Which source each agent reads, from which folder and by whose rules, inheritance worked out."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from personas.models import Agent, Workspace
from skills.discovery import applicable
from skills.harnesses import HARNESSES, Harness
from skills.models import AgentContext, Source
from skills.selectors.harnesses import own_rule_sets


@dataclass(frozen=True)
class Outlook:
    """What an agent can see of the disk."""

    agent: Agent
    source: Source
    harness: Harness
    working_directory: str
    # The agent whose choice this is: itself, or one above.
    chosen_by: Agent

    @property
    def is_inherited(self) -> bool:
        return self.chosen_by.pk != self.agent.pk

    def paths(self, stored: Collection[str]) -> list[tuple[str, str]]:
        """Kind and path of the stored files this agent is given, in order."""
        return [(kind, path) for kind, path in applicable(self.harness, self.working_directory, stored)]


def outlooks_of(workspace: Workspace | int) -> dict[int, Outlook]:
    """By agent; those that read nowhere are left out. Three queries, however many agents."""
    rows = AgentContext.objects.in_workspace(workspace).select_related("source__grant", "source__workspace")
    choices = {row.agent_id: row for row in rows}
    if not choices:
        return {}
    agents = {row.pk: row for row in Agent.objects.in_workspace(workspace)}
    rules = HARNESSES | own_rule_sets(workspace)
    found = (outlook(agent, agents, choices, rules) for agent in agents.values())
    return {one.agent.pk: one for one in found if one}


def outlook_of(agent: Agent) -> Outlook | None:
    return outlooks_of(agent.workspace_id).get(agent.pk)


def outlook(
    agent: Agent, agents: dict[int, Agent], choices: dict[int, AgentContext], rules: dict[str, Harness]
) -> Outlook | None:
    line = list(upwards(agent, agents))
    chooser = next((one for one in line if one.pk in choices), None)
    if chooser is None:
        return None
    choice = choices[chooser.pk]
    if choice.source is None or choice.source.is_archived or choice.harness not in rules:
        return None
    between = line[: line.index(chooser) + 1]
    folder = next((one.working_directory for one in between if one.working_directory), "")
    return Outlook(agent, choice.source, rules[choice.harness], below(folder, choice.source), chooser)


def upwards(agent: Agent, agents: dict[int, Agent]) -> Iterable[Agent]:
    """The agent, its parent, and so on; no circle can be stored, but none would hang this either."""
    seen: set[int] = set()
    at: Agent | None = agent
    while at is not None and at.pk not in seen:
        seen.add(at.pk)
        yield at
        at = agents.get(at.parent_id) if at.parent_id is not None else None


def below(folder: str, source: Source) -> str:
    """The working directory as a path below the source's root; one that lies elsewhere means the root."""
    if not folder.startswith("/"):
        return folder.strip("/")
    grant = source.grant.path if source.grant else ""
    root = "/".join(part for part in (grant.rstrip("/"), source.folder) if part)
    inside = f"{folder.rstrip('/')}/".startswith(f"{root}/") if root else False
    return folder[len(root) :].strip("/") if inside else ""
