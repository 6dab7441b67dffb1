"""The addresses of fetch, render and batch beside all others, as the product joins them."""

from django.urls import include, path

from prompts.api import batches, fetching, rendering

urlpatterns = [
    path("api/v1/", include([*fetching.urlpatterns, *rendering.urlpatterns, *batches.urlpatterns])),
    path("", include("project.urls")),
]
