"""The pages of the skills app; all of them belong to a workspace."""

from django.urls import URLPattern, URLResolver, include, path

from skills.views import agent_skills, contexts, files, inbox, rule_sets, sources
from skills.views.skills import SkillPages

inside: list[URLPattern | URLResolver] = [
    path("skills/", include(SkillPages().urls())),
    path("sources/", include(sources.urls)),
    path("rule-sets/", include(rule_sets.urls)),
    path("inbox/", include(inbox.urls)),
    path("files/", include(files.urls)),
    path("agents/<slug:agent>/skills/", include(agent_skills.urls)),
    path("agents/<slug:agent>/context/", include(contexts.urls)),
]

urlpatterns = [path("w/<slug:workspace>/", include(inside))]
