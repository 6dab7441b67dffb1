"""URLs of the personas pages; TenancyMiddleware checks access to everything under /w/<workspace>/."""

from typing import Any

from django.urls import URLPattern, URLResolver, include, path

from personas.accounts import views as accounts_views
from personas.agents.views import AgentPages
from personas.api_keys import views as api_keys_views
from personas.audit import views as audit_views
from personas.channels.views import ChannelPages
from personas.events import views as events_views
from personas.identities.views import IdentityPages
from personas.members import invitation_views
from personas.members import views as members_views
from personas.memories.views import MemoryPages
from personas.notifications import views as notifications_views
from personas.records.views import RecordPages
from personas.souls.views import SoulPages
from personas.tools.views import ToolPages
from personas.user_profiles.views import UserProfilePages
from personas.webhooks import views as webhooks_views
from personas.work.views import ResponsibilityPages, TaskPages
from personas.workspaces import views as workspaces_views

RECORD_PAGES: tuple[RecordPages[Any], ...] = (
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

workspace_urlpatterns: list[URLPattern | URLResolver] = [
    path("settings/", workspaces_views.workspace_settings, name="workspace-settings"),
    path("settings/slug/", workspaces_views.change_slug, name="workspace-slug"),
    path("settings/take-over/", workspaces_views.take_over, name="take-over-workspace"),
    path("settings/delete/", workspaces_views.delete_workspace_view, name="delete-workspace"),
    path("audit/", include(audit_views.urlpatterns)),
    path("events/", include(events_views.urlpatterns)),
    path("notifications/", include(notifications_views.urls)),
    path("webhooks/", include(webhooks_views.urls)),
    path("members/", include(members_views.urls)),
    path("keys/", include(api_keys_views.urls)),
    *(path(f"{family.name}/", include(family.urls())) for family in RECORD_PAGES),
]

urlpatterns = [
    path("", workspaces_views.choose_workspace, name="start"),
    path("workspaces/new/", workspaces_views.new_workspace, name="new-workspace"),
    path(
        "workspaces/<int:workspace_id>/restore/",
        workspaces_views.restore_workspace_view,
        name="restore-workspace",
    ),
    path("profile/", workspaces_views.edit_profile, name="profile"),
    path("profile/security/", accounts_views.security_events, name="security-events"),
    path("join/<str:token>/", invitation_views.invitation_view, name="invitation"),
    path("join/<str:token>/other-account/", invitation_views.switch_account, name="other-account"),
    path("w/<slug:workspace>/", include(workspace_urlpatterns)),
]
