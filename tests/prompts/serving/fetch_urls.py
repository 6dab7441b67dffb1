"""URLs of fetch, render and batch together with all others."""

from django.urls import include, path

from prompts.serving import batch_api, fetch_api, render_api

urlpatterns = [
    path("api/v1/", include([*fetch_api.urlpatterns, *render_api.urlpatterns, *batch_api.urlpatterns])),
    path("", include("project.urls")),
]
