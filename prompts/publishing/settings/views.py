"""Pages for prompt settings on each level, and for the source of each effective value."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from personas.errors import EditConflict, InvalidInput
from personas.models import Agent, Channel
from personas.records.views import RecordPages, post_only
from personas.roles import Permission
from personas.selectors import list_agents, list_channels
from personas.tenancy.middleware import WorkspaceRequest, require_permission
from personas.ui.review import REVERT_REVIEW, Reviewed
from prompts.models import PromptSettings
from prompts.publishing.inputs import CollectedInputs, collect_inputs
from prompts.publishing.inputs.effective_settings import SETTING_LABELS
from prompts.publishing.settings.forms import PromptSettingsForm
from prompts.publishing.settings.selectors import list_levels_with_settings
from prompts.publishing.settings.services import find_level_settings, get_or_build_level, put_settings

PERSONA_LABELS = {"identity": _("Identity"), "soul": _("Soul"), "user_profile": _("User profile")}


class PromptSettingsPages(RecordPages[PromptSettings]):
    """The history of a level's settings, and what the Studio needs to edit them.

    The pages that list and edit levels are the functions below: a level exists before it has a row.
    """

    model, form = PromptSettings, PromptSettingsForm
    one, many = _("prompt settings"), _("Prompt settings")
    name, icon, templates, key = "prompt-settings", "rules", "prompts/settings", "level_key"
    has_new_page = False

    def find(self, request: WorkspaceRequest, key: str) -> PromptSettings:
        row = get_or_build_level(request.workspace, key)
        if row is None:
            raise Http404("Level not found.")
        return row

    def get_record_url(self, record: PromptSettings, page: str = "detail") -> str:
        if page in ("detail", "new"):
            return reverse("prompt-settings:list", args=[record.workspace.slug])
        return get_level_form_url(record) if page == "edit" else super().get_record_url(record, page)

    def history_urls(self) -> list[URLPattern]:
        one = "levels/<slug:key>/history/"
        return [
            path(one, self.history, name="history"),
            path(f"{one}<int:number>/", self.revision, name="revision"),
            path(
                f"{one}<int:number>/restore/",
                post_only(self.require_write(self.revert, REVERT_REVIEW)),
                name="revert",
            ),
        ]


def get_level_form_url(row: PromptSettings) -> str:
    """Return the URL of the form of a level."""
    slugs = [link.slug for link in (row.agent, row.channel) if link is not None]
    return reverse(f"prompt-settings:{row.level}", args=[row.workspace.slug, *slugs])


def index(request: WorkspaceRequest) -> HttpResponse:
    """List the levels that have settings, and all agents and channels for which settings can be created."""
    context = {
        "rows": list_levels_with_settings(request.workspace),
        "agents": list_agents(request.workspace).filter(archived_at=None).prefetch_related(None),
        "channels": list_channels(request.workspace).filter(archived_at=None),
    }
    return render(request, "prompts/settings/list.html", context)


@require_permission(Permission.EDIT, Reviewed())
def edit_workspace_settings(request: WorkspaceRequest) -> HttpResponse:
    return edit_level_settings(request, gettext("Workspace defaults"))


@require_permission(Permission.EDIT, Reviewed())
def edit_agent_settings(request: WorkspaceRequest, agent: str) -> HttpResponse:
    row = get_object_or_404(list_agents(request.workspace), slug=agent)
    return edit_level_settings(request, str(row), agent=row)


def show_setting_sources(request: WorkspaceRequest, agent: str) -> HttpResponse:
    """Show, for every prompt of an agent, the level that each setting comes from."""
    row = get_object_or_404(list_agents(request.workspace), slug=agent)
    prompts = collect_inputs(request.workspace, [row], at=timezone.now())
    context = {"agent": row, "prompts": [describe_setting_sources(prompt) for prompt in prompts]}
    return render(request, "prompts/settings/origins.html", context)


@require_permission(Permission.EDIT, Reviewed())
def edit_channel_settings(request: WorkspaceRequest, channel: str) -> HttpResponse:
    row = get_object_or_404(list_channels(request.workspace), slug=channel)
    return edit_level_settings(request, str(row), channel=row)


@require_permission(Permission.EDIT, Reviewed())
def edit_prompt_settings(request: WorkspaceRequest, agent: str, channel: str) -> HttpResponse:
    """Edit the settings of one agent on one channel, which take precedence over all other levels."""
    agent_row = get_object_or_404(list_agents(request.workspace), slug=agent)
    channel_row = get_object_or_404(list_channels(request.workspace), slug=channel)
    return edit_level_settings(request, f"{agent_row} · {channel_row}", agent=agent_row, channel=channel_row)


def edit_level_settings(
    request: WorkspaceRequest,
    title: str,
    *,
    agent: Agent | None = None,
    channel: Channel | None = None,
) -> HttpResponse:
    """Show and save the form of one level."""
    row = find_level_settings(request.workspace, agent, channel)
    data = request.POST if request.method == "POST" else None
    is_agent = agent is not None and channel is None
    form = PromptSettingsForm(
        data,
        workspace=request.workspace,
        record=row,
        is_agent=is_agent,
        is_workspace=agent is None and channel is None,
    )
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
        except InvalidInput as error:
            form.add_service_errors(error)
        except EditConflict as conflict:
            form.add_error(None, conflict.message)
        else:
            messages.success(request, gettext("Settings for “%(title)s” saved.") % {"title": title})
            return redirect(request.path)
    level = row or PromptSettings(workspace=request.workspace, agent=agent, channel=channel)
    impact_url = PromptSettingsPages().get_impact_url(request, level)
    context = {"form": form, "title": title, "agent": agent, "settings": row, "impact_url": impact_url}
    return render(request, "prompts/settings/level.html", context, status=422 if form.errors else 200)


def describe_setting_sources(prompt: CollectedInputs) -> dict[str, Any]:
    """Return the display name of each setting of one prompt and the level that its value comes from."""
    labels = PERSONA_LABELS | SETTING_LABELS
    rows = [(label, prompt.levels[name]) for name, label in labels.items() if name in prompt.levels]
    return {"channel": prompt.channel, "rows": rows}


urls = (
    [
        path("", index, name="list"),
        path("workspace/", edit_workspace_settings, name="workspace"),
        path("agents/<slug:agent>/", edit_agent_settings, name="agent"),
        path("agents/<slug:agent>/origins/", show_setting_sources, name="origins"),
        path("agents/<slug:agent>/channels/<slug:channel>/", edit_prompt_settings, name="prompt"),
        path("channels/<slug:channel>/", edit_channel_settings, name="channel"),
        *PromptSettingsPages().history_urls(),
    ],
    "prompt-settings",
)
