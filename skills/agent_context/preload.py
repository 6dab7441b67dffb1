"""Load the skills, assignments, source choices and rule sets of a workspace, shared by all its agents."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet, prefetch_related_objects

from core.db.fast import CompiledQueries
from personas.models import Agent, Workspace
from skills.discovery.harnesses import HARNESSES, Harness
from skills.models import AgentContext, AssignedTo, ContextFile, FileAgent, RuleSet, Skill, SkillLink
from skills.sources.readers import prefetch_uses


@dataclass(frozen=True)
class WorkspaceSkills:
    """Rows of a workspace that are needed for the contexts of its agents.

    The fields are the results of `build_skill_queries`, in the same order.
    """

    skills: list[Skill]
    skill_links: list[tuple[int, int]]
    assigned_files: list[ContextFile]
    file_links: list[tuple[int, int]]
    context_choices: list[AgentContext]
    parent_agents: list[Agent]
    rule_sets: list[RuleSet]

    @classmethod
    def load(cls, workspace: Workspace | int, agents: Iterable[Agent]) -> "WorkspaceSkills":
        """Load the rows of a workspace.

        `agents` may have unsaved edits. Their parents are loaded too, because an edit can set a new parent.
        """
        parents = {agent.parent_id for agent in agents if agent.parent_id is not None}
        return cls.from_rows(workspace, SKILL_QUERIES(workspace, parents))

    @classmethod
    def from_rows(cls, workspace: Workspace | int, rows: Sequence[list[Any]]) -> "WorkspaceSkills":
        """Build the object from the rows of SKILL_QUERIES."""
        loaded = cls(*rows)
        prefetch_related_objects(loaded.context_choices, prefetch_uses(workspace))
        return loaded

    @cached_property
    def choices(self) -> dict[int, AgentContext]:
        return {row.agent_id: row for row in self.context_choices}

    @cached_property
    def parents(self) -> dict[int, Agent]:
        return {agent.pk: agent for agent in self.parent_agents}

    @cached_property
    def harnesses(self) -> dict[str, Harness]:
        return HARNESSES | {row.harness: row.as_harness() for row in self.rule_sets}


def build_skill_queries(
    workspace: Workspace | int, parent_ids: Collection[int]
) -> list["QuerySet[Any, Any]"]:
    """Return one query per field of WorkspaceSkills."""
    skills = Skill.objects.in_workspace(workspace).filter(archived_at=None)
    return [
        # Instructions are not deferred, because a version stores the file of each skill that it offers.
        skills.order_by("name", "pk"),
        SkillLink.objects.in_workspace(workspace).values_list("skill_id", "agent_id"),
        list_assigned_files(workspace),
        FileAgent.objects.in_workspace(workspace).values_list("file_id", "agent_id"),
        AgentContext.objects.in_workspace(workspace),
        list_parent_agents(workspace, parent_ids),
        RuleSet.objects.in_workspace(workspace).filter(archived_at=None),
    ]


SKILL_QUERIES = CompiledQueries(build_skill_queries)


def list_assigned_files(workspace: Workspace | int) -> "QuerySet[ContextFile]":
    rows = ContextFile.objects.in_workspace(workspace).filter(file_kind="skill", is_ignored=False)
    rows = rows.exclude(assigned_to=AssignedTo.WHERE_FOUND).filter(
        active__isnull=False, source__archived_at=None
    )
    return rows.select_related("active__content", "latest", "source").order_by("name", "pk")


def list_parent_agents(workspace: Workspace | int, parent_ids: Collection[int]) -> "QuerySet[Agent]":
    """Return the agents that have sub-agents, and the agents in `parent_ids`."""
    agents = Agent.objects.in_workspace(workspace)
    children = agents.filter(parent=OuterRef("pk"))
    return agents.filter(Exists(children) | Q(pk__in=parent_ids))
