"""Pages of the quick start: the form with a preview, and how to connect a bot to the new agent."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_POST

from personas.api_keys.descriptions import KEY_ENV_VARIABLE, build_usage_example
from personas.errors import InvalidInput
from personas.models import Agent, Channel
from personas.roles import Permission, has_permission
from personas.tenancy.middleware import (
    WorkspaceRequest,
    is_recently_authenticated,
    require_permission,
    require_reauthentication,
)
from personas.ui.review import NotReviewed, Reviewed
from prompts.models import AgentPrompt, LedgerEntry
from prompts.page_lookup import get_agent_or_404
from prompts.publishing.review.services import preview_action
from prompts.studio.quick_start.forms import QuickStartForm
from prompts.studio.quick_start.secret_cookie import delete_secret_cookie, set_secret_cookie, take_secret
from prompts.studio.quick_start.services import create_agent_key, create_agent_with_soul


@require_permission(Permission.EDIT, Reviewed(gettext_lazy("Create")))
@sensitive_variables("secret")
def new(request: WorkspaceRequest) -> HttpResponse:
    """Create an agent, and a key for it if the member may create keys and has signed in recently."""
    form = QuickStartForm(request.POST if request.method == "POST" else None, workspace=request.workspace)
    if request.method == "POST" and form.is_valid():
        try:
            agent = create_agent_with_soul(request.workspace, by=request.actor, **form.get_values())
        except InvalidInput as error:
            add_creation_errors(form, error)
        else:
            messages.success(request, _("Agent “%(agent)s” created.") % {"agent": agent})
            secret = ""
            if can_create_key(request) and is_recently_authenticated(request):
                _key, secret = create_agent_key(agent, by=request.actor)
            return redirect_to_connect_page(request, agent, form.get_channel(), secret)
    status = 422 if form.errors else 200
    return render(request, "prompts/quick_start/new.html", {"form": form}, status=status)


def add_creation_errors(form: QuickStartForm, error: InvalidInput) -> None:
    """Show the errors of the soul, whose fields are named differently, at the field of the form."""
    names = {"text": "soul"}
    form.add_service_errors(
        InvalidInput({names.get(name, name): texts for name, texts in error.errors.items()})
    )


@require_permission(Permission.EDIT, NotReviewed("shows the prompt of an agent that is not saved"))
@require_POST
def preview_quick_start(request: WorkspaceRequest) -> HttpResponse:
    """Render the prompt that the agent would get. Nothing is saved.

    While the form is not valid, the response is 204, so the last preview stays.
    """
    form = QuickStartForm(request.POST, workspace=request.workspace)
    if not form.is_valid():
        return HttpResponse(status=204)
    values = form.get_values()
    try:
        action = preview_action(
            request.workspace, lambda: create_agent_with_soul(request.workspace, by=request.actor, **values)
        )
    except InvalidInput:
        return HttpResponse(status=204)
    texts = [text for difference in action.review.differences for _prompt, text in difference.texts]
    context = {"text": texts[0] if texts else "", "token_count": action.review.token_delta}
    return render(request, "prompts/quick_start/_preview.html", context)


@sensitive_variables("secret", "context", "example")
def connect(request: WorkspaceRequest, agent: str, channel: str) -> HttpResponse:
    """Show how a bot fetches the prompt, and whether it did.

    If a key was just created, this is the only page that contains its secret. A reload does not.
    """
    record, target = get_target_or_404(request, agent, channel)
    secret = take_secret(request)
    url = f"{settings.PUBLIC_URL}/api/v1/agents/{record.slug}/channels/{target.slug}/prompt"
    example = build_usage_example(url, secret)
    context: dict[str, Any] = {
        "agent": record,
        "channel": target,
        "secret": secret,
        "commands": f"{example.export}\n{example.curl}" if secret else example.curl,
        "variable": KEY_ENV_VARIABLE,
        "can_create_key": can_create_key(request),
        "first": find_first_fetch(record, target),
    }
    response = render(request, "prompts/quick_start/connect.html", context)
    delete_secret_cookie(request, response)
    response["Cache-Control"] = "no-store"
    return response


@require_permission(Permission.MANAGE_KEYS, NotReviewed("an API key"))
@require_reauthentication
@require_POST
@sensitive_variables("secret")
def create_key_view(request: WorkspaceRequest, agent: str, channel: str) -> HttpResponse:
    """Create a key for the agent. The next page shows it once."""
    record, target = get_target_or_404(request, agent, channel)
    _key, secret = create_agent_key(record, by=request.actor)
    return redirect_to_connect_page(request, record, target, secret)


def live_status(request: WorkspaceRequest, agent: str, channel: str) -> HttpResponse:
    """Return the first request of a bot as soon as there is one, and 204 before."""
    record, target = get_target_or_404(request, agent, channel)
    first = find_first_fetch(record, target)
    if first is None:
        return HttpResponse(status=204)
    context = {"agent": record, "channel": target, "first": first}
    return render(request, "prompts/quick_start/_status.html", context)


def get_target_or_404(request: WorkspaceRequest, agent: str, channel: str) -> tuple[Agent, Channel]:
    record = get_agent_or_404(request, agent)
    link = record.channel_links.select_related("channel").filter(channel__slug=channel).first()
    if link is None:
        raise Http404("The agent is not on this channel.")
    return record, link.channel


def find_first_fetch(agent: Agent, channel: Channel) -> LedgerEntry | None:
    prompts = AgentPrompt.objects.in_workspace(agent.workspace_id)
    prompt = prompts.filter(agent=agent, channel=channel).first()
    rows = LedgerEntry.objects.in_workspace(agent.workspace_id).filter(prompt=prompt, skill=None)
    return rows.order_by("at", "pk").first() if prompt else None


def can_create_key(request: WorkspaceRequest) -> bool:
    return has_permission(request.membership.role, Permission.MANAGE_KEYS)


@sensitive_variables("secret")
def redirect_to_connect_page(
    request: WorkspaceRequest, agent: Agent, channel: Channel, secret: str
) -> HttpResponse:
    """Redirect after the form, so that reloading the page does not send it again."""
    url = reverse("quick-start:connect", args=[request.workspace.slug, agent.slug, channel.slug])
    response = redirect(url)
    if secret:
        set_secret_cookie(request, response, secret, url)
    return response


urlpatterns: list[URLPattern] = [
    path("", new, name="new"),
    path("preview/", preview_quick_start, name="preview"),
    path("<slug:agent>/<slug:channel>/", connect, name="connect"),
    path("<slug:agent>/<slug:channel>/key/", create_key_view, name="key"),
    path("<slug:agent>/<slug:channel>/live/", live_status, name="live"),
]
urls = (urlpatterns, "quick-start")
