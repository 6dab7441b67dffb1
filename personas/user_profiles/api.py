"""REST resource of user profiles."""

from django.db.models import QuerySet

from personas.models import UserProfile, Workspace
from personas.persona_files.api import EXTRA_SCHEMA, NamedResource
from personas.selectors import list_user_profiles


class UserProfileResource(NamedResource):
    """User profiles: the persons that agents serve.

    `name` is that of the record in lists; `display_name` is the name of the person in prompts.
    """

    model = UserProfile
    name, singular = "user-profiles", "user profile"
    file_name = "USER.md"
    search_fields = ("name", "slug", "display_name")
    schema_overrides = {"extra": EXTRA_SCHEMA}

    def get_queryset(self, workspace: Workspace | int) -> QuerySet[UserProfile]:
        return list_user_profiles(workspace)


urlpatterns = UserProfileResource().urls()
