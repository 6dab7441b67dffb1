"""Pages of souls."""

from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from personas.agents.services import create_named_record
from personas.models import Soul
from personas.persona_files.views import PersonaFilePages
from personas.records.bulk_views import ARCHIVE_ACTIONS
from personas.records.services import FieldValues
from personas.selectors import list_souls
from personas.souls.forms import SoulForm
from personas.tenancy.middleware import WorkspaceRequest
from personas.ui.sorting import NAMED_RECORD_SORTS


class SoulPages(PersonaFilePages[Soul]):
    model, form = Soul, SoulForm
    one, many = _("soul"), _("Souls")
    name, icon, templates = "souls", "soul", "personas/souls"
    lede = _("Personalities in Markdown. Some layouts use a built-in default for agents without a soul.")
    usage_param, search_fields = "soul", ("name", "text")
    sorts, default_sort, bulk_actions = NAMED_RECORD_SORTS, "name", ARCHIVE_ACTIONS
    file_name = "SOUL.md"

    def rows(self, request: WorkspaceRequest) -> QuerySet[Soul]:
        return list_souls(request.workspace)

    def create(self, request: WorkspaceRequest, values: FieldValues) -> Soul:
        return create_named_record(Soul, request.workspace, values, by=request.actor)
