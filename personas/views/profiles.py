"""Whom agents speak to."""

from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from personas.forms.profiles import UserProfileForm
from personas.models import UserProfile
from personas.selectors import profiles_of
from personas.services.agents import create_named
from personas.services.records import Values
from personas.sorting import NAMED_SORTS
from personas.tenancy import WorkspaceRequest
from personas.views.persona_files import PersonaFilePages
from personas.views.records_bulk import SHELVING


class UserProfilePages(PersonaFilePages[UserProfile]):
    model, form = UserProfile, UserProfileForm
    one, many = _("user profile"), _("User profiles")
    name, icon, templates = "user-profiles", "profile", "personas/profiles"
    lede = _("The people your agents serve: what to call them, where they are, what to mind.")
    used_word, searched = "user_profile", ("label", "name", "location")
    sorts = NAMED_SORTS | {"name": ("name", "label"), "timezone": ("timezone", "label")}
    usual_sort, bulk_verbs = "label", SHELVING
    file_name = "USER.md"

    def rows(self, request: WorkspaceRequest) -> QuerySet[UserProfile]:
        return profiles_of(request.workspace)

    def create(self, request: WorkspaceRequest, values: Values) -> UserProfile:
        return create_named(UserProfile, request.workspace, values, by=request.actor)
