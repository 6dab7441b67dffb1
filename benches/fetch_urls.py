"""The product's URLs and the naive implementation."""

from django.urls import include, path

from benches.fetch_views import NaivePromptViewSet
from prompts.serving import batch_api, fetch_api, render_api

PROMPTS = [*fetch_api.urlpatterns, *render_api.urlpatterns, *batch_api.urlpatterns]

urlpatterns = [
    path(
        "naive/agents/<slug:agent>/channels/<slug:channel>/prompt",
        NaivePromptViewSet.as_view({"get": "retrieve"}),
    ),
    path("api/v1/", include(PROMPTS)),
    path("", include("project.urls")),
]
