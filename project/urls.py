"""All addresses: the apps' pages, accounts, the operators' back office, health and figures."""

from django.contrib import admin
from django.urls import include, path

from project.health import views as health_views
from project.metrics.views import metrics
from project.styleguide.views import styleguide

urlpatterns = [
    path("healthz", health_views.healthz, name="healthz"),
    path("readyz", health_views.readyz, name="readyz"),
    path("metrics", metrics, name="metrics"),
    path("styleguide/", styleguide, name="styleguide"),
    path("accounts/", include("allauth.urls")),
    path("operator/", admin.site.urls),
    path("api/v1/", include(("project.api.urls", "api"))),
    path("", include("personas.urls")),
    path("", include("skills.urls")),
    path("", include("prompts.urls")),
]

handler400 = "project.error_views.bad_request"
handler404 = "project.error_views.not_found"
handler500 = "project.error_views.server_error"
