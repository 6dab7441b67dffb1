"""REST resource of tools."""

from django.db.models import QuerySet

import personas.api.url_converters  # noqa: F401  # registers the URL path converters
from personas.api.record_resource import RecordResource
from personas.api.schema import JSON_OBJECT_FORMAT, prose_schema
from personas.models import Agent, Tool, Workspace
from personas.selectors import list_tools


class ToolResource(RecordResource[Tool]):
    """The tools that agents can call."""

    model = Tool
    name, singular = "tools", "tool"
    lookup_field, lookup_converter = "name", "word"
    search_fields = ("name", "description")
    # If a tool calls an agent and has no name, the name is derived from the agent's slug.
    optional_fields = ("name",)
    links = {"agent": (Agent, "slug")}
    schema_overrides = {
        "snippet": prose_schema(
            2_000, description="Line breaks become spaces. At most 300 characters are stored."
        ),
        "parameters": prose_schema(20_000, format=JSON_OBJECT_FORMAT),
    }
    input_condition = replacement_condition = {
        "if": {"required": ["name"]},
        "else": {"properties": {"agent": {"type": "string"}}, "required": ["agent"]},
    }

    def get_queryset(self, workspace: Workspace | int) -> QuerySet[Tool]:
        return list_tools(workspace)


urlpatterns = ToolResource().urls()
