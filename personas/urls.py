"""The pages of the personas app; everything under /w/<workspace>/ passes the tenant gate."""

from typing import Any

from django.urls import URLPattern, URLResolver, include, path

from personas.agents.views import AgentPages, IdentityPages, SoulPages
from personas.api_keys import views as api_keys_views
from personas.audit import views as audit_views
from personas.channels.views import ChannelPages
from personas.members import invitation_views
from personas.members import views as members_views
from personas.memories.views import MemoryPages
from personas.records.views import RecordPages
from personas.tools.views import ToolPages
from personas.user_profiles.views import UserProfilePages
from personas.work.views import ResponsibilityPages, TaskPages
from personas.workspaces import views as workspaces_views

FAMILIES: tuple[RecordPages[Any], ...] = (
    AgentPages(),
    IdentityPages(),
    SoulPages(),
    UserProfilePages(),
    MemoryPages(),
    ResponsibilityPages(),
    TaskPages(),
    ToolPages(),
    ChannelPages(),
)

inside: list[URLPattern | URLResolver] = [
    path("settings/", workspaces_views.workspace_settings, name="workspace-settings"),
    path("audit/", include(audit_views.urlpatterns)),
    path("members/", include(members_views.urls)),
    path("keys/", include(api_keys_views.urls)),
    *(path(f"{family.name}/", include(family.urls())) for family in FAMILIES),
]

urlpatterns = [
    path("", workspaces_views.start, name="start"),
    path("workspaces/new/", workspaces_views.new_workspace, name="new-workspace"),
    path("profile/", workspaces_views.profile, name="profile"),
    path("join/<str:token>/", invitation_views.invitation, name="invitation"),
    path("join/<str:token>/other-account/", invitation_views.other_account, name="other-account"),
    path("w/<slug:workspace>/", include(inside)),
]
