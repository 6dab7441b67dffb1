"""URL routes of the skills app's pages; all of them are below a workspace."""

from django.urls import URLPattern, URLResolver, include, path

from skills.agent_context import views as agent_context_views
from skills.files import views as files_views
from skills.inbox import views as inbox_views
from skills.library import views as library_views
from skills.library.views import SkillPages
from skills.rule_sets import views as rule_sets_views
from skills.sources import views as sources_views

workspace_urlpatterns: list[URLPattern | URLResolver] = [
    path("skills/", include(SkillPages().urls())),
    path("sources/", include(sources_views.urls)),
    path("rule-sets/", include(rule_sets_views.urls)),
    path("inbox/", include(inbox_views.urls)),
    path("files/", include(files_views.urls)),
    path("agents/<slug:agent>/skills/", include(library_views.urls)),
    path("agents/<slug:agent>/context/", include(agent_context_views.urls)),
]

urlpatterns = [path("w/<slug:workspace>/", include(workspace_urlpatterns))]
