"""Pages of identities."""

from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from personas.agents.services import create_named_record
from personas.identities.forms import IdentityForm
from personas.models import Identity
from personas.persona_files.views import PersonaFilePages
from personas.records.bulk_views import ARCHIVE_ACTIONS
from personas.records.services import FieldValues
from personas.selectors import list_identities
from personas.tenancy.middleware import WorkspaceRequest
from personas.ui.sorting import NAMED_RECORD_SORTS


class IdentityPages(PersonaFilePages[Identity]):
    model, form = Identity, IdentityForm
    one, many = _("identity"), _("Identities")
    name, icon, templates = "identities", "identity", "personas/identities"
    lede = _("Who your agents are: name, emoji, creature and vibe. Several agents can share an identity.")
    usage_param, search_fields = "identity", ("name", "display_name", "creature", "vibe")
    sorts = NAMED_RECORD_SORTS | {"display_name": ("display_name", "name"), "creature": ("creature", "name")}
    default_sort, bulk_actions = "name", ARCHIVE_ACTIONS
    file_name = "IDENTITY.md"

    def rows(self, request: WorkspaceRequest) -> QuerySet[Identity]:
        return list_identities(request.workspace)

    def create(self, request: WorkspaceRequest, values: FieldValues) -> Identity:
        return create_named_record(Identity, request.workspace, values, by=request.actor)
