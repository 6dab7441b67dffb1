"""Skill records and their assignment to agents."""

from typing import Any

from django.core.exceptions import ValidationError
from django.db import models

from core.db.fields import LineField, ProseField
from personas.models import Agent, Record, WorkspaceOwned
from personas.tenancy.fields import TenantForeignKey
from personas.workspaces.models import validate_not_reserved
from skills.skill_format.parser import list_skill_problems


class Skill(Record):
    """An Agent Skill. Name and description are part of prompts; agents load the body when they need it."""

    kind = "skill"
    content = (
        "name",
        "description",
        "body",
        "license",
        "compatibility",
        "allowed_tools",
        "metadata",
        "disable_model_invocation",
        "for_all_agents",
    )

    name = LineField(max_length=64, validators=[validate_not_reserved])
    description = ProseField(max_length=1_024)
    body = ProseField(max_length=100_000)
    license = LineField(max_length=200, blank=True)
    compatibility = LineField(max_length=500, blank=True)
    allowed_tools = LineField(max_length=1_000, blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    disable_model_invocation = models.BooleanField(default=False)
    for_all_agents = models.BooleanField(default=False)

    class Meta(Record.Meta):
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="skill_name_once")]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        super().clean()
        problems = list_skill_problems(name=self.name, description=self.description, metadata=self.metadata)
        if problems:
            raise ValidationError({problem.field: problem.message for problem in problems})

    def snapshot(self) -> dict[str, Any]:
        links = self.agent_links.all() if self.pk else []
        return super().snapshot() | {"agents": sorted(link.agent_id for link in links)}

    def values_from_snapshot(self, data: dict[str, Any]) -> dict[str, Any]:
        agents = Agent.objects.in_workspace(self.workspace_id).filter(pk__in=data["agents"])
        return super().values_from_snapshot(data) | {"agents": list(agents)}

    def save_children(self, values: dict[str, Any]) -> None:
        if "agents" not in values:
            return
        self.agent_links.all().delete()
        for agent in values["agents"]:
            SkillLink(workspace_id=self.workspace_id, skill=self, agent=agent).save()

    def query_agent_ids(self) -> "models.QuerySet[Any, int]":
        agents = Agent.objects.in_workspace(self.workspace_id).filter(archived_at=None)
        if not self.for_all_agents:
            agents = agents.filter(skill_links__skill=self)
        return agents.values_list("pk", flat=True)


class SkillLink(WorkspaceOwned):
    """Assignment of a skill to one agent."""

    skill = TenantForeignKey(Skill, on_delete=models.CASCADE, related_name="agent_links")
    agent = TenantForeignKey(Agent, on_delete=models.PROTECT, related_name="skill_links")

    class Meta(WorkspaceOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["skill", "agent"], name="skill_once_per_agent")]

    def __str__(self) -> str:
        return f"{self.skill} · {self.agent}"
