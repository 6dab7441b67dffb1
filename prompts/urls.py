"""URLs of the pages of the prompts app, all below a workspace."""

from django.urls import URLPattern, URLResolver, include, path

from prompts.evidence.drift import views as drift_views
from prompts.evidence.erasure import views as erasure_views
from prompts.evidence.integrity import views as integrity_views
from prompts.evidence.ledger import views as ledger_views
from prompts.evidence.replay import views as replay_views
from prompts.publishing.builds import views as builds_views
from prompts.publishing.comments import views as comments_views
from prompts.publishing.labels import views as labels_views
from prompts.publishing.preview import views as preview_views
from prompts.publishing.provenance import views as provenance_views
from prompts.publishing.releases import views as releases_views
from prompts.publishing.settings import views as settings_views
from prompts.publishing.versions import views as versions_views
from prompts.studio import urls as studio_urls
from prompts.studio.agent_pages import activity_views, channel_views
from prompts.studio.fleet import views as fleet_views
from prompts.studio.quick_start import views as quick_start_views
from prompts.studio.search import views as search_views

workspace_urlpatterns: list[URLPattern | URLResolver] = [
    path("", fleet_views.fleet_overview, name="home"),
    path("fleet/", include(fleet_views.urls)),
    path("", include(versions_views.urls)),
    path("agents/<slug:agent>/channels/", include(channel_views.urls)),
    path("agents/<slug:agent>/activity/", include(activity_views.urls)),
    path("quick-start/", include(quick_start_views.urls)),
    path("find/", include(search_views.urls)),
    path("", include(studio_urls.urls)),
    path("holdings/", include(provenance_views.urls)),
    path("releases/", include(releases_views.urls)),
    path("comments/", include(comments_views.urls)),
    path("labels/", include(labels_views.urls)),
    path("impact/", include(preview_views.urls)),
    path("rebuilding/", include(builds_views.urls)),
    path("prompt-settings/", include(settings_views.urls)),
    path("erasures/", include(erasure_views.urls)),
    path("time-machine/", include(replay_views.urls)),
    path("ledger/", include(ledger_views.urls)),
    path("bots/", include(drift_views.urls)),
    path("verify/", include(integrity_views.urls)),
]

urlpatterns = [path("w/<slug:workspace>/", include(workspace_urlpatterns))]
