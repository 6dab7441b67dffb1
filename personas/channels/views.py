"""Pages of channels."""

from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from personas.channels.forms import ChannelForm
from personas.models import Channel
from personas.records.bulk_views import ARCHIVE_ACTIONS
from personas.records.list_views import DATE_FIELDS
from personas.records.views import RecordPages
from personas.selectors import list_channels
from personas.tenancy.middleware import WorkspaceRequest
from personas.ui.sorting import USAGE_SORTS


class ChannelPages(RecordPages[Channel]):
    model, form = Channel, ChannelForm
    one, many = _("channel"), _("Channels")
    name, icon, templates = "channels", "channel", "personas/channels"
    lede = _("Where agents speak, with formatting rules for each channel.")
    usage_param, search_fields = "channel", ("name", "slug")
    sorts = {"name": ("name",), **USAGE_SORTS}
    default_sort, bulk_actions = "name", ARCHIVE_ACTIONS
    export_fields = ("slug", "name", "is_built_in", "formatting", "agent_count", *DATE_FIELDS)

    def rows(self, request: WorkspaceRequest) -> QuerySet[Channel]:
        return list_channels(request.workspace)
