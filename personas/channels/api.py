"""REST resource of channels."""

from django.db.models import QuerySet

from personas.api.authentication import ApiClient
from personas.api.key_limits import Touches
from personas.api.record_resource import RecordResource
from personas.models import Channel, Workspace
from personas.selectors import list_channels


class ChannelResource(RecordResource[Channel]):
    """The channels on which agents communicate."""

    model = Channel
    name, singular = "channels", "channel"
    search_fields = ("name", "slug")
    create_only_fields = ("slug",)
    read_touches = write_touches = Touches.CHANNEL

    def get_queryset(self, workspace: Workspace | int) -> QuerySet[Channel]:
        return list_channels(workspace)

    def list_visible(self, caller: ApiClient) -> QuerySet[Channel]:
        rows = super().list_visible(caller)
        if "channels" in caller.key.scopes:
            rows = rows.filter(slug__in=caller.key.scopes["channels"])
        return rows


urlpatterns = ChannelResource().urls()
