"""The pages of the prompts app; all of them belong to a workspace."""

from django.urls import URLPattern, URLResolver, include, path

from prompts.views import (
    agent_activity,
    agent_channels,
    erasures,
    fleet,
    holdings,
    impact,
    labels,
    ledger,
    palette,
    rebuilding,
    releases,
    settings,
    studio,
    time_machine,
    verify,
    versions,
)

inside: list[URLPattern | URLResolver] = [
    path("", fleet.show, name="home"),
    path("fleet/", include(fleet.urls)),
    path("", include(versions.urls)),
    path("agents/<slug:agent>/channels/", include(agent_channels.urls)),
    path("agents/<slug:agent>/activity/", include(agent_activity.urls)),
    path("find/", include(palette.urls)),
    path("", include(studio.urls)),
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
