"""What holds for many prompts, level by level: workspace, agent, channel; and what came of it."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from personas.errors import Conflict, Invalid
from personas.models import Agent, Channel
from personas.roles import Permission
from personas.selectors import agents_of, channels_of
from personas.tenancy.middleware import WorkspaceRequest, needs
from prompts.inputs import Gathered, gather
from prompts.models import PromptSettings
from prompts.settings.forms import PromptSettingsForm
from prompts.settings.services import put_settings, settings_at

NAMES = {
    "identity": _("Identity"),
    "soul": _("Soul"),
    "user_profile": _("User profile"),
    "native_tools": _("Tools as definitions"),
    "entry": _("Entry point"),
    "mode": _("Mode"),
    "mission": _("Mission"),
    "total_characters": _("Most characters"),
    "token_budget": _("Token budget"),
}


def index(request: WorkspaceRequest) -> HttpResponse:
    """Every level that says something, and where to say more."""
    rows = PromptSettings.objects.in_workspace(request.workspace).select_related("agent", "channel")
    context = {
        "rows": rows.order_by("agent__name", "channel__name", "pk"),
        "agents": agents_of(request.workspace).filter(archived_at=None).prefetch_related(None),
        "channels": channels_of(request.workspace).filter(archived_at=None),
    }
    return render(request, "prompts/settings/list.html", context)


@needs(Permission.EDIT)
def of_workspace(request: WorkspaceRequest) -> HttpResponse:
    return level(request, gettext("Workspace defaults"))


@needs(Permission.EDIT)
def of_agent(request: WorkspaceRequest, agent: str) -> HttpResponse:
    row = get_object_or_404(agents_of(request.workspace), slug=agent)
    return level(request, str(row), agent=row)


def origins(request: WorkspaceRequest, agent: str) -> HttpResponse:
    """For every prompt of an agent, the level that each value came from."""
    row = get_object_or_404(agents_of(request.workspace), slug=agent)
    found = gather(request.workspace, [row], at=timezone.now())
    context = {"agent": row, "prompts": [origins_of(one) for one in found]}
    return render(request, "prompts/settings/origins.html", context)


@needs(Permission.EDIT)
def of_channel(request: WorkspaceRequest, channel: str) -> HttpResponse:
    row = get_object_or_404(channels_of(request.workspace), slug=channel)
    return level(request, str(row), channel=row)


def level(
    request: WorkspaceRequest,
    title: str,
    *,
    agent: Agent | None = None,
    channel: Channel | None = None,
) -> HttpResponse:
    """One level's form."""
    row = settings_at(request.workspace, agent, channel)
    data = request.POST if request.method == "POST" else None
    form = PromptSettingsForm(data, workspace=request.workspace, record=row, is_agent=agent is not None)
    if data is not None and form.is_valid():
        try:
            put_settings(
                request.workspace,
                form.values(),
                expected=form.cleaned_data["revision"] or 0,
                by=request.actor,
                agent=agent,
                channel=channel,
            )
        except Invalid as error:
            form.take_errors(error)
        except Conflict as conflict:
            form.add_error(None, conflict.message)
        else:
            messages.success(request, gettext("Settings of “%(title)s” saved.") % {"title": title})
            return redirect(request.path)
    context = {"form": form, "title": title, "agent": agent}
    return render(request, "prompts/settings/level.html", context, status=422 if form.errors else 200)


def origins_of(gathered: Gathered) -> dict[str, Any]:
    """For one prompt, each inherited value's name and the level it came from."""
    rows = [(NAMES[name], where) for name, where in gathered.levels.items() if name in NAMES]
    return {"channel": gathered.channel, "rows": rows}


urls = (
    [
        path("", index, name="list"),
        path("workspace/", of_workspace, name="workspace"),
        path("agents/<slug:agent>/", of_agent, name="agent"),
        path("agents/<slug:agent>/origins/", origins, name="origins"),
        path("channels/<slug:channel>/", of_channel, name="channel"),
    ],
    "prompt-settings",
)
