"""Tools and channels."""

from django.db.models import QuerySet
from django.urls import register_converter
from django.urls.converters import StringConverter
from django.utils.translation import gettext_lazy as _

from personas.forms.means import ChannelForm, ToolForm
from personas.models import Channel, Tool
from personas.selectors import channels_of, tools_of
from personas.sorting import USED_SORTS
from personas.tenancy import WorkspaceRequest
from personas.views.records import RecordPages
from personas.views.records_bulk import SHELVING
from personas.views.records_list import DATES


class ToolName(StringConverter):
    """What a tool may be called, so that no other text gets as far as the database."""

    regex = "[A-Za-z0-9_.-]+"


register_converter(ToolName, "tool")


class ToolPages(RecordPages[Tool]):
    model, form = Tool, ToolForm
    one, many = _("tool"), _("Tools")
    name, icon, templates = "tools", "tool", "personas/tools"
    lede = _("What agents can call: words for the model, a schema for the caller.")
    used_word = "tool"
    key, converter, searched = "name", "tool", ("name", "description", "snippet")
    sorts = {"name": ("name",), **USED_SORTS}
    usual_sort, bulk_verbs = "name", SHELVING

    def rows(self, request: WorkspaceRequest) -> QuerySet[Tool]:
        return tools_of(request.workspace)


class ChannelPages(RecordPages[Channel]):
    model, form = Channel, ChannelForm
    one, many = _("channel"), _("Channels")
    name, icon, templates = "channels", "channel", "personas/channels"
    lede = _("Where agents speak, and the formatting that fits each place.")
    used_word, searched = "channel", ("name", "slug")
    sorts = {"name": ("name",), **USED_SORTS}
    usual_sort, bulk_verbs = "name", SHELVING
    columns_exported = ("slug", "name", "is_built_in", "formatting", "agent_count", *DATES)

    def rows(self, request: WorkspaceRequest) -> QuerySet[Channel]:
        return channels_of(request.workspace)
