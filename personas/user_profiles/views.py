"""Pages of user profiles."""

from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from personas.agents.services import create_named_record
from personas.models import UserProfile
from personas.persona_files.views import PersonaFilePages
from personas.records.bulk_views import ARCHIVE_ACTIONS
from personas.records.services import FieldValues
from personas.selectors import list_user_profiles
from personas.tenancy.middleware import WorkspaceRequest
from personas.ui.sorting import NAMED_RECORD_SORTS
from personas.user_profiles.forms import UserProfileForm


class UserProfilePages(PersonaFilePages[UserProfile]):
    model, form = UserProfile, UserProfileForm
    one, many = _("user profile"), _("User profiles")
    name, icon, templates = "user-profiles", "profile", "personas/user_profiles"
    lede = _("The people your agents work for: how to address them, where they are and what to keep in mind.")
    usage_param, search_fields = "user_profile", ("name", "display_name", "location")
    sorts = NAMED_RECORD_SORTS | {"display_name": ("display_name", "name"), "timezone": ("timezone", "name")}
    default_sort, bulk_actions = "name", ARCHIVE_ACTIONS
    file_name = "USER.md"

    def rows(self, request: WorkspaceRequest) -> QuerySet[UserProfile]:
        return list_user_profiles(request.workspace)

    def create(self, request: WorkspaceRequest, values: FieldValues) -> UserProfile:
        return create_named_record(UserProfile, request.workspace, values, by=request.actor)
