"""What a workspace holds for its agents besides the files of their sources: asked for in one question."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from personas.models import Agent, Workspace
from skills.discovery.harnesses import HARNESSES, Harness
from skills.models import AgentContext, ContextFile, FileAgent, Reach, RuleSet, Skill, SkillLink


@dataclass(frozen=True)
class WorkspaceSkills:
    """The answers to the questions below, in their order."""

    written: list[Skill]
    written_links: list[tuple[int, int]]
    handed: list[ContextFile]
    handed_links: list[tuple[int, int]]
    chosen: list[AgentContext]
    above: list[Agent]
    own_rules: list[RuleSet]

    @classmethod
    def around(cls, workspace: Workspace | int, agents: Iterable[Agent]) -> "WorkspaceSkills":
        """These may stand below others than is saved."""
        return cls(*map(list, build_skill_queries(workspace, {agent.parent_id for agent in agents})))

    @cached_property
    def choices(self) -> dict[int, AgentContext]:
        return {row.agent_id: row for row in self.chosen}

    @cached_property
    def parents(self) -> dict[int, Agent]:
        return {agent.pk: agent for agent in self.above}

    @cached_property
    def rules(self) -> dict[str, Harness]:
        return HARNESSES | {row.harness: row.as_harness() for row in self.own_rules}


def build_skill_queries(
    workspace: Workspace | int, parents: Iterable[int | None] = ()
) -> list["QuerySet[Any, Any]"]:
    """To be read together, also with others."""
    chosen = AgentContext.objects.in_workspace(workspace)
    written = Skill.objects.in_workspace(workspace).filter(archived_at=None)
    return [
        # Prompts do not hold bodies; whoever asks for one gets it then.
        written.defer("body").order_by("name", "pk"),
        SkillLink.objects.in_workspace(workspace).values_list("skill_id", "agent_id"),
        list_assigned_files(workspace),
        FileAgent.objects.in_workspace(workspace).values_list("file_id", "agent_id"),
        chosen.select_related("source__grant", "source__workspace"),
        list_parent_agents(workspace, parents).filter(Exists(chosen)),
        RuleSet.objects.in_workspace(workspace).filter(archived_at=None),
    ]


def list_assigned_files(workspace: Workspace | int) -> "QuerySet[ContextFile]":
    rows = ContextFile.objects.in_workspace(workspace).filter(file_kind="skill", is_ignored=False)
    rows = rows.exclude(reach=Reach.FOUND).filter(in_force__isnull=False, source__archived_at=None)
    return rows.select_related("in_force__content", "newest", "source").order_by("name", "pk")


def list_parent_agents(workspace: Workspace | int, others: Iterable[int | None]) -> "QuerySet[Agent]":
    """Agents that some stand below, and others that somebody would."""
    agents = Agent.objects.in_workspace(workspace)
    below = agents.filter(parent=OuterRef("pk"))
    return agents.filter(Exists(below) | Q(pk__in=[pk for pk in others if pk is not None]))
