"""URLs of the whole product: pages, API, accounts, admin site, health and metrics."""

from django.contrib import admin
from django.urls import include, path

from project.api import docs_views
from project.api import urls as api_urls
from project.dev_mail.views import mailbox
from project.health import views as health_views
from project.metrics.views import metrics
from project.styleguide.views import styleguide

api_patterns = [
    *api_urls.urlpatterns,
    path("openapi.json", docs_views.openapi_json, name="schema"),
    path("docs/", docs_views.api_reference, name="docs"),
    path("docs/errors", docs_views.error_reference, name="errors"),
]
urlpatterns = [
    path("healthz", health_views.healthz, name="healthz"),
    path("readyz", health_views.readyz, name="readyz"),
    path("metrics", metrics, name="metrics"),
    path("styleguide/", styleguide, name="styleguide"),
    path("dev/mail/", mailbox, name="dev-mail"),
    path("accounts/", include("allauth.urls")),
    path("operator/", admin.site.urls),
    path("api/v1/", include((api_patterns, "api"))),
    path("", include("personas.urls")),
    path("", include("skills.urls")),
    path("", include("prompts.urls")),
]

handler400 = "project.error_views.bad_request"
handler404 = "project.error_views.not_found"
handler500 = "project.error_views.server_error"
