"""The product's addresses and the naive way."""

from django.urls import include, path

from benches.fetch_views import Naive
from prompts.api import batches, fetching, rendering

PROMPTS = [*fetching.urlpatterns, *rendering.urlpatterns, *batches.urlpatterns]

urlpatterns = [
    path("naive/agents/<slug:agent>/prompt", Naive.as_view({"get": "retrieve"})),
    path("api/v1/", include(PROMPTS)),
    path("", include("project.urls")),
]
