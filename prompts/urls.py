"""The pages of the prompts app; all of them belong to a workspace."""

from django.urls import URLPattern, URLResolver, include, path

from prompts.views import holdings, labels, releases, versions

inside: list[URLPattern | URLResolver] = [
    path("", include(versions.urls)),
    path("holdings/", include(holdings.urls)),
    path("releases/", include(releases.urls)),
    path("labels/", include(labels.urls)),
]

urlpatterns = [path("w/<slug:workspace>/", include(inside))]
