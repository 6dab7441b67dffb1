"""The product's addresses and the naive way."""

from django.urls import include, path

from benches.fetch_views import Naive
from prompts.serving import batch_api, fetch_api, render_api

PROMPTS = [*fetch_api.urlpatterns, *render_api.urlpatterns, *batch_api.urlpatterns]

urlpatterns = [
    path("naive/agents/<slug:agent>/prompt", Naive.as_view({"get": "retrieve"})),
    path("api/v1/", include(PROMPTS)),
    path("", include("project.urls")),
]
