"""The pages of the personas app; everything under /w/<workspace>/ passes the tenant gate."""

from typing import Any

from django.urls import URLPattern, URLResolver, include, path

from personas.views import audit, invitations, keys, members, workspaces
from personas.views.agents import AgentPages, IdentityPages, SoulPages
from personas.views.means import ChannelPages, ToolPages
from personas.views.memories import MemoryPages
from personas.views.profiles import UserProfilePages
from personas.views.records import RecordPages
from personas.views.work import ResponsibilityPages, TaskPages

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
    path("settings/", workspaces.workspace_settings, name="workspace-settings"),
    path("audit/", include(audit.urlpatterns)),
    path("members/", include(members.urls)),
    path("keys/", include(keys.urls)),
    *(path(f"{family.name}/", include(family.urls())) for family in FAMILIES),
]

urlpatterns = [
    path("", workspaces.start, name="start"),
    path("workspaces/new/", workspaces.new_workspace, name="new-workspace"),
    path("profile/", workspaces.profile, name="profile"),
    path("join/<str:token>/", invitations.invitation, name="invitation"),
    path("join/<str:token>/other-account/", invitations.other_account, name="other-account"),
    path("w/<slug:workspace>/", include(inside)),
]
