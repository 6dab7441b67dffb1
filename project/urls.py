"""All addresses: the apps' pages, accounts, the operators' back office and the health questions."""

from django.contrib import admin
from django.urls import include, path

from project import health

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("accounts/", include("allauth.urls")),
    path("operator/", admin.site.urls),
    path("", include("personas.urls")),
    path("", include("skills.urls")),
    path("", include("prompts.urls")),
]
