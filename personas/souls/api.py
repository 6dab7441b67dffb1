"""REST resource of souls."""

from django.db.models import QuerySet

from personas.models import Soul, Workspace
from personas.persona_files.api import NamedResource
from personas.selectors import list_souls


class SoulResource(NamedResource):
    """Souls: personalities in Markdown that several agents can share."""

    model = Soul
    name, singular = "souls", "soul"
    file_name = "SOUL.md"

    def get_queryset(self, workspace: Workspace | int) -> QuerySet[Soul]:
        return list_souls(workspace)


urlpatterns = SoulResource().urls()
