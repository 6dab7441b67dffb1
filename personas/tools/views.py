"""Pages of tools."""

from django.db.models import QuerySet
from django.urls import register_converter
from django.urls.converters import StringConverter
from django.utils.translation import gettext_lazy as _

from personas.models import Tool
from personas.records.bulk_views import ARCHIVE_ACTIONS
from personas.records.views import RecordPages
from personas.selectors import list_tools
from personas.tenancy.middleware import WorkspaceRequest
from personas.tools.forms import ToolForm
from personas.ui.sorting import USAGE_SORTS


class ToolNameConverter(StringConverter):
    """URL path converter for tool names. A URL with other characters gets 404 without a database query."""

    regex = "[A-Za-z0-9_.-]+"


register_converter(ToolNameConverter, "tool")


class ToolPages(RecordPages[Tool]):
    model, form = Tool, ToolForm
    one, many = _("tool"), _("Tools")
    name, icon, templates = "tools", "tool", "personas/tools"
    lede = _("Functions that agents can call, each with a description for the model and a parameter schema.")
    usage_param = "tool"
    key, converter, search_fields = "name", "tool", ("name", "description", "snippet")
    sorts = {"name": ("name",), **USAGE_SORTS}
    default_sort, bulk_actions = "name", ARCHIVE_ACTIONS

    def rows(self, request: WorkspaceRequest) -> QuerySet[Tool]:
        return list_tools(request.workspace)
