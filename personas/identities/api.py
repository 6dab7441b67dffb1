"""REST resource of identities."""

from django.db.models import QuerySet

from personas.models import Identity, Workspace
from personas.persona_files.api import EXTRA_SCHEMA, NamedResource
from personas.selectors import list_identities


class IdentityResource(NamedResource):
    """Identities: an agent's name, emoji, creature and vibe.

    `name` is that of the record in lists; `display_name` is the name of the agent in prompts.
    """

    model = Identity
    name, singular = "identities", "identity"
    file_name = "IDENTITY.md"
    schema_overrides = {"extra": EXTRA_SCHEMA}

    def get_queryset(self, workspace: Workspace | int) -> QuerySet[Identity]:
        return list_identities(workspace)


urlpatterns = IdentityResource().urls()
