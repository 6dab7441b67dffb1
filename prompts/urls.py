"""The pages of the prompts app; all of them belong to a workspace."""

from django.urls import URLPattern, URLResolver, include, path

from prompts.views import (
    erasures,
    holdings,
    impact,
    labels,
    ledger,
    rebuilding,
    releases,
    settings,
    time_machine,
    verify,
    versions,
)

inside: list[URLPattern | URLResolver] = [
    path("", include(versions.urls)),
    path("holdings/", include(holdings.urls)),
    path("releases/", include(releases.urls)),
    path("labels/", include(labels.urls)),
    path("impact/", include(impact.urls)),
    path("rebuilding/", include(rebuilding.urls)),
    path("prompt-settings/", include(settings.urls)),
    path("erasures/", include(erasures.urls)),
    path("time-machine/", include(time_machine.urls)),
    path("ledger/", include(ledger.urls)),
    path("verify/", include(verify.urls)),
]

urlpatterns = [path("w/<slug:workspace>/", include(inside))]
