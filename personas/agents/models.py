"""Models of agents, and of their links to tools and channels."""

from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.db.fields import LineField, ProseField
from core.db.line_lists import LineListField
from personas.channels.models import Channel
from personas.records.models import Record
from personas.tenancy.fields import TenantForeignKey
from personas.tenancy.models import WorkspaceOwned
from personas.tools.models import Tool
from personas.user_profiles.models import UserProfile
from personas.workspaces.models import ReleasePolicy, slug_validator, validate_not_reserved

# The names of the prompt layouts. They are repeated here because this app does not import `prompts`;
# a test compares them with the layouts defined there.
LAYOUTS = ("dramatis", "opal", "pi", "moltis", "nova", "ptc")
# The layouts use only the capabilities `files` and `persistence`. Agents may have others.
validate_capability = RegexValidator(
    r"\A[a-z0-9]+(?:[-_.][a-z0-9]+)*\Z",
    _("Use lowercase letters and digits, separated by hyphens, underscores or dots."),
    code="capability",
)


class Agent(Record):
    """A bot whose prompt is assembled from shared records and the agent's own fields."""

    kind = "agent"
    content = (
        "name",
        "description",
        "layout",
        "identity",
        "soul",
        "user_profile",
        "instructions",
        "working_directory",
        "directories",
        "capabilities",
        "documentation_main",
        "documentation_additional",
        "documentation_examples",
        "release_policy",
        "parent",
    )

    slug = models.SlugField(max_length=64, db_index=False, validators=[slug_validator, validate_not_reserved])
    name = LineField(max_length=80)
    description = LineField(max_length=300, blank=True)
    layout = models.CharField(max_length=40, default="dramatis")
    identity = TenantForeignKey(
        "personas.Identity", null=True, blank=True, on_delete=models.PROTECT, related_name="agents"
    )
    soul = TenantForeignKey(
        "personas.Soul", null=True, blank=True, on_delete=models.PROTECT, related_name="agents"
    )
    user_profile = TenantForeignKey(
        UserProfile, null=True, blank=True, on_delete=models.PROTECT, related_name="agents"
    )
    instructions = ProseField(max_length=60_000, blank=True)
    working_directory = LineField(max_length=1_000, blank=True)
    directories = LineListField(blank=True, default=list, db_default="")
    # None: not stated. An empty list states that the agent has no capabilities.
    capabilities = LineListField(null=True, blank=True, item_length=64, item_validators=[validate_capability])
    # Paths or URLs of the documentation of the agent's own harness.
    documentation_main = LineField(max_length=1_000, blank=True, default="", db_default="")
    documentation_additional = LineField(max_length=1_000, blank=True, default="", db_default="")
    documentation_examples = LineField(max_length=1_000, blank=True, default="", db_default="")
    release_policy = models.CharField(
        max_length=10, choices=ReleasePolicy.choices, default=ReleasePolicy.AUTOMATIC
    )
    parent = TenantForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="sub_agents"
    )

    class Meta(Record.Meta):
        constraints = [
            models.UniqueConstraint(fields=["workspace", "slug"], name="agent_slug_once"),
            models.CheckConstraint(
                condition=models.Q(release_policy__in=ReleasePolicy.values), name="agent_policy_known"
            ),
            models.CheckConstraint(
                condition=models.Q(parent=None) | ~models.Q(parent=models.F("id")),
                name="agent_not_own_parent",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        super().clean()
        if self.layout not in LAYOUTS:
            raise ValidationError(
                {"layout": gettext("“%(layout)s” is not a valid layout.") % {"layout": self.layout}}
            )
        self._check_parent_cycle()

    def snapshot(self) -> dict[str, Any]:
        links = self.tool_links.all() if self.pk else []
        channels = self.channel_links.all() if self.pk else []
        return super().snapshot() | {
            "tools": [link.tool_id for link in links if link.use == ToolUse.ACTIVE],
            "planning_tools": [link.tool_id for link in links if link.use == ToolUse.PLANNING],
            "channels": [link.channel_id for link in channels],
        }

    def values_from_snapshot(self, data: dict[str, Any]) -> dict[str, Any]:
        tools = Tool.objects.in_workspace(self.workspace_id).in_bulk(data["tools"] + data["planning_tools"])
        channels = Channel.objects.in_workspace(self.workspace_id).in_bulk(data["channels"])
        return super().values_from_snapshot(data) | {
            "tools": [tools[pk] for pk in data["tools"] if pk in tools],
            "planning_tools": [tools[pk] for pk in data["planning_tools"] if pk in tools],
            "channels": [channels[pk] for pk in data["channels"] if pk in channels],
        }

    def save_children(self, values: dict[str, Any]) -> None:
        if "tools" in values or "planning_tools" in values:
            self._save_tools(values.get("tools", []), values.get("planning_tools", []))
        if "channels" in values:
            self.channel_links.all().delete()
            for position, channel in enumerate(values["channels"]):
                AgentChannel(
                    workspace_id=self.workspace_id, agent=self, channel=channel, position=position
                ).save()

    def agent_ids(self) -> list[int]:
        """List this agent, its descendants, which inherit its folder and sources, and users of its tool."""
        return [self.pk, *self.list_descendant_ids(), *list_tool_user_ids(self)]

    def list_descendant_ids(self) -> list[int]:
        """List the ids of the sub-agents, of their sub-agents, and so on, with one query per level."""
        agents = Agent.objects.in_workspace(self.workspace_id)
        found: list[int] = []
        level = [self.pk]
        while level:
            children = agents.filter(parent__in=level).exclude(pk__in=[self.pk, *found])
            level = list(children.values_list("pk", flat=True))
            found += level
        return found

    def _save_tools(self, active: list[Tool], planning: list[Tool]) -> None:
        if both := {tool.name for tool in active} & {tool.name for tool in planning}:
            names = ", ".join(sorted(both))
            raise ValidationError(
                {
                    "planning_tools": gettext(
                        "These tools are already active and cannot also be planning tools: %(names)s."
                    )
                    % {"names": names}
                }
            )
        if own := [tool.name for tool in (*active, *planning) if tool.agent_id == self.pk]:
            field = "tools" if any(tool.agent_id == self.pk for tool in active) else "planning_tools"
            message = gettext("An agent cannot call itself. Remove these tools: %(names)s.") % {
                "names": ", ".join(own)
            }
            raise ValidationError({field: message})
        self.tool_links.all().delete()
        uses = [(tool, ToolUse.ACTIVE) for tool in active] + [(tool, ToolUse.PLANNING) for tool in planning]
        for position, (tool, use) in enumerate(uses):
            AgentTool(
                workspace_id=self.workspace_id, agent=self, tool=tool, use=use, position=position
            ).save()

    def _check_parent_cycle(self) -> None:
        ancestor, visited_ids = self.parent, {self.pk}
        while ancestor is not None:
            if ancestor.pk in visited_ids:
                raise ValidationError({"parent": gettext("An agent cannot be its own parent.")})
            visited_ids.add(ancestor.pk)
            ancestor = ancestor.parent


class ToolUse(models.TextChoices):
    """Whether an agent may call a tool, or may only mention it in plans."""

    ACTIVE = "active", _("Active")
    PLANNING = "planning", _("For planning only")


class AgentTool(WorkspaceOwned):
    """Assignment of a tool to an agent, with its position in the agent's list of tools."""

    agent = TenantForeignKey(Agent, on_delete=models.CASCADE, related_name="tool_links")
    tool = TenantForeignKey(Tool, on_delete=models.PROTECT, related_name="agent_links")
    use = models.CharField(max_length=10, choices=ToolUse.choices)
    position = models.PositiveIntegerField()

    class Meta(WorkspaceOwned.Meta):
        ordering = ["position", "id"]
        constraints = [
            models.UniqueConstraint(fields=["agent", "tool"], name="tool_once_per_agent"),
            models.CheckConstraint(condition=models.Q(use__in=ToolUse.values), name="tool_use_known"),
        ]

    def __str__(self) -> str:
        return f"{self.agent} · {self.tool}"


class AgentChannel(WorkspaceOwned):
    """Assignment of a channel to an agent, with its position in the agent's list of channels."""

    agent = TenantForeignKey(Agent, on_delete=models.CASCADE, related_name="channel_links")
    channel = TenantForeignKey(Channel, on_delete=models.PROTECT, related_name="agent_links")
    position = models.PositiveIntegerField()

    class Meta(WorkspaceOwned.Meta):
        ordering = ["position", "id"]
        constraints = [models.UniqueConstraint(fields=["agent", "channel"], name="channel_once_per_agent")]

    def __str__(self) -> str:
        return f"{self.agent} · {self.channel}"


def list_tool_user_ids(agent: Agent) -> "models.QuerySet[Any, int]":
    """Return the ids of the active agents that have this agent as a tool: prompts may contain its text."""
    links = AgentTool.objects.in_workspace(agent.workspace_id)
    links = links.filter(tool__agent=agent, agent__archived_at=None).exclude(agent=agent)
    return links.values_list("agent_id", flat=True)


def list_agent_ids_using(link: str, workspace: int, pk: int) -> "models.QuerySet[Any, int]":
    """Return the ids of the agents whose foreign key `link` has this value, except archived agents."""
    agents = Agent.objects.in_workspace(workspace).filter(**{link: pk}, archived_at=None)
    return agents.values_list("pk", flat=True)
