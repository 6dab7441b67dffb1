"""REST resource of agents."""

from typing import Any

from django.db.models import Prefetch, QuerySet
from django.urls import URLPattern

import personas.api.url_converters  # noqa: F401  # registers the URL path converters
from personas.agents.agent_file import MAX_RESPONSIBILITIES, import_agent
from personas.agents.models import ToolUse
from personas.api.authentication import ApiClient
from personas.api.key_limits import Touches, out_of_scope_error
from personas.api.operations import ApiRequest, Operation
from personas.api.record_resource import RecordResource
from personas.api.record_schema import REVIEW_LIFT_REASON_SCHEMA
from personas.api.responses import ApiResponse, json_response
from personas.api.schema import (
    Schema,
    array_schema,
    enum_schema,
    integer_schema,
    line_schema,
    nullable_schema,
    object_schema,
    prose_schema,
    slug_schema,
)
from personas.api.views import endpoint
from personas.models import (
    LAYOUTS,
    Agent,
    AgentChannel,
    AgentTool,
    Channel,
    Identity,
    Soul,
    Tool,
    UserProfile,
    Workspace,
)
from personas.records.services import FieldValues
from personas.roles import Permission
from personas.selectors import list_agents

# The body is the configuration of a nova agent. Other keys are accepted and listed in the response.
AGENT_CONFIG_SCHEMA: Schema = {
    "type": "object",
    "properties": {
        "name": line_schema(80, least=1),
        "slug": slug_schema(description="Default: derived from the name."),
        "description": nullable_schema(line_schema(300)),
        "identity": nullable_schema(prose_schema(20_000)),
        "instructions": nullable_schema(prose_schema(60_000)),
        "role": nullable_schema(
            prose_schema(20_000, description="Legacy. Becomes the identity; no instructions are stored.")
        ),
        "directories": nullable_schema(
            array_schema(line_schema(1_000, least=1), description="Additional directories, stored unchanged.")
        ),
        "responsibilities": array_schema(
            {
                "type": "object",
                "properties": {
                    "title": line_schema(120, least=1),
                    "content": prose_schema(20_000, least=1),
                    "text": prose_schema(20_000, least=1, description="Alias of `content`."),
                },
                "required": ["title"],
                "if": {"required": ["text"]},
                "else": {"required": ["content"]},
                "title": "AgentConfigurationResponsibility",
            },
            most=MAX_RESPONSIBILITIES,
        ),
    },
    "required": ["name"],
    "title": "AgentConfiguration",
}


class AgentResource(RecordResource[Agent]):
    """Agents, with their shared parts, tools and channels."""

    model = Agent
    name, singular = "agents", "agent"
    search_fields = ("name", "slug", "description")
    create_only_fields = ("slug",)
    links = {
        "identity": (Identity, "slug"),
        "soul": (Soul, "slug"),
        "user_profile": (UserProfile, "slug"),
        "parent": (Agent, "slug"),
    }
    link_lists = {"tools": (Tool, "name"), "planning_tools": (Tool, "name"), "channels": (Channel, "slug")}
    schema_overrides = {"layout": enum_schema(LAYOUTS, default="dramatis", title="Layout")}
    write_only_fields = {"reason": REVIEW_LIFT_REASON_SCHEMA}
    agent_path = "slug"
    read_touches = write_touches = Touches.AGENT

    def get_queryset(self, workspace: Workspace | int) -> QuerySet[Agent]:
        return list_agents(workspace)

    def list_visible(self, caller: ApiClient) -> QuerySet[Agent]:
        """Return the agents that the key may read, each with its channels that the key may read."""
        rows = super().list_visible(caller)
        if "channels" not in caller.key.scopes:
            return rows
        links = AgentChannel.objects.in_workspace(caller.workspace)
        links = links.filter(channel__slug__in=caller.key.scopes["channels"]).select_related("channel")
        tools = AgentTool.objects.in_workspace(caller.workspace).select_related("tool")
        return rows.prefetch_related(None).prefetch_related(
            Prefetch("tool_links", queryset=tools), Prefetch("channel_links", queryset=links)
        )

    def list_history(self, call: ApiRequest, key: Any) -> ApiResponse:
        self.find_record(call, key)
        if "channels" in call.caller.key.scopes:
            # Revisions contain all channels of the agent, including those that this key may not see.
            raise out_of_scope_error("channels")
        return super().list_history(call, key)

    def link_list_json(self, record: Agent, name: str) -> list[Any]:
        if name == "channels":
            return [link.channel.slug for link in record.channel_links.all()]
        use = ToolUse.ACTIVE if name == "tools" else ToolUse.PLANNING
        return [link.tool.name for link in record.tool_links.all() if link.use == use]

    def complete_values(self, record: Agent, values: FieldValues) -> FieldValues:
        """Add the stored `tools` or `planning_tools` if the request contains only one of these two lists.

        Saving replaces both lists, so the list that is not in the request would be emptied.
        """
        if not {"tools", "planning_tools"} & set(values):
            return values
        links = list(record.tool_links.all())
        stored = {
            "tools": [link.tool for link in links if link.use == ToolUse.ACTIVE],
            "planning_tools": [link.tool for link in links if link.use == ToolUse.PLANNING],
        }
        return stored | values

    def import_file(self, call: ApiRequest) -> ApiResponse:
        result = import_agent(call.workspace, call.body, by=call.actor)
        agent_json = self.to_json(self.reload(result.agent))
        body = {
            "agent": agent_json,
            "responsibilities": len(result.responsibilities),
            "not_imported": result.not_imported,
        }
        return json_response(body, 201, ETag=agent_json["etag"], Location=self.get_url(result.agent))

    def extra_urls(self) -> list[URLPattern]:
        return [
            endpoint(
                "agents:import",
                "agents-import",
                post=Operation(
                    self.import_file,
                    "Import an agent from a nova configuration",
                    operation_id="importAgent",
                    permission=Permission.EDIT,
                    touches=Touches.WORKSPACE,
                    body=AGENT_CONFIG_SCHEMA,
                    body_example={"name": "Nova", "role": "You are Nova, a personal assistant."},
                    answer=object_schema(
                        {
                            "agent": self.response_schema(),
                            "responsibilities": integer_schema(description="Number of records created."),
                            "not_imported": {
                                "type": "array",
                                "items": {"type": "string"},
                                "description": "Keys of the configuration that were not imported.",
                            },
                        },
                        title="AgentImportResult",
                    ),
                    status=201,
                    is_retryable=True,
                    tag=self.name,
                ),
            )
        ]


urlpatterns = AgentResource().urls()
