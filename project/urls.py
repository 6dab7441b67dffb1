"""All addresses: the apps' pages, accounts, the operators' back office, health and figures."""

from django.contrib import admin
from django.urls import include, path

from project import health
from project.metrics.views import metrics
from project.styleguide import styleguide

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics, name="metrics"),
    path("styleguide/", styleguide, name="styleguide"),
    path("accounts/", include("allauth.urls")),
    path("operator/", admin.site.urls),
    path("api/v1/", include(("project.api_urls", "api"))),
    path("", include("personas.urls")),
    path("", include("skills.urls")),
    path("", include("prompts.urls")),
]

handler400 = "project.api_errors.bad_request"
handler404 = "project.api_errors.not_found"
handler500 = "project.api_errors.server_error"
