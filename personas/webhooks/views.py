"""Pages of webhook endpoints: list, create, edit, deliveries, and actions. A secret is displayed once."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_POST

from personas.errors import DomainError, InvalidInput
from personas.models import EndpointStatus, WebhookEndpoint
from personas.roles import Permission, has_permission
from personas.tenancy.middleware import (
    WorkspaceRequest,
    describe_required_roles,
    require_permission,
    require_reauthentication,
)
from personas.ui.review import NotReviewed
from personas.webhooks.forms import EndpointForm
from personas.webhooks.selectors import get_endpoint_public_key, list_deliveries, list_endpoints
from personas.webhooks.services import (
    EDITABLE_FIELDS,
    create_endpoint,
    delete_endpoint,
    edit_endpoint,
    redeliver,
    rotate_secret,
    send_test_event,
    set_endpoint_status,
)

NOT_REVIEWED = NotReviewed("endpoints that get events")

MAX_DELIVERIES = 50


def index(request: WorkspaceRequest) -> HttpResponse:
    require_webhook_manager(request)
    rows = list_endpoints(request.workspace).order_by("name")
    return render(request, "personas/webhooks/list.html", {"endpoints": rows})


def detail(request: WorkspaceRequest, key: int) -> HttpResponse:
    require_webhook_manager(request)
    endpoint = get_workspace_endpoint(request, key)
    filters = [
        (_("Event types"), endpoint.types),
        (_("Agents"), endpoint.agents),
        (_("Channels"), endpoint.channels),
        (_("Labels"), endpoint.labels),
    ]
    context = {
        "endpoint": endpoint,
        "filters": [(name, values) for name, values in filters if values],
        "public_key": get_endpoint_public_key(endpoint),
        "deliveries": list_deliveries(endpoint)[:MAX_DELIVERIES],
    }
    return render(request, "personas/webhooks/detail.html", context)


@require_permission(Permission.MANAGE_KEYS, NOT_REVIEWED)
@require_reauthentication
@sensitive_variables("secret")
def new(request: WorkspaceRequest) -> HttpResponse:
    form = EndpointForm(request.POST if request.method == "POST" else None, workspace=request.workspace)
    if request.method == "POST" and form.is_valid():
        try:
            endpoint, secret = create_endpoint(request.workspace, form.cleaned_data, by=request.actor)
        except DomainError as error:
            add_form_errors(form, error)
        else:
            return render_webhook_secret(request, endpoint, secret)
    status = 422 if form.errors else 200
    return render(request, "personas/webhooks/form.html", {"form": form}, status=status)


@require_permission(Permission.MANAGE_KEYS, NOT_REVIEWED)
@require_reauthentication
def edit(request: WorkspaceRequest, key: int) -> HttpResponse:
    endpoint = get_workspace_endpoint(request, key)
    form = EndpointForm(
        request.POST if request.method == "POST" else None,
        initial={name: getattr(endpoint, name) for name in EDITABLE_FIELDS},
        workspace=request.workspace,
    )
    if request.method == "POST" and form.is_valid():
        try:
            edit_endpoint(endpoint, form.cleaned_data, by=request.actor)
        except DomainError as error:
            add_form_errors(form, error)
        else:
            messages.success(request, _("“%(name)s” saved.") % {"name": form.cleaned_data["name"]})
            return redirect("webhooks:detail", request.workspace.slug, endpoint.pk)
    context = {"form": form, "endpoint": endpoint}
    return render(request, "personas/webhooks/form.html", context, status=422 if form.errors else 200)


@require_permission(Permission.MANAGE_KEYS, NOT_REVIEWED)
@require_reauthentication
@require_POST
@sensitive_variables("secret")
def rotate_secret_view(request: WorkspaceRequest, key: int) -> HttpResponse:
    endpoint, secret = rotate_secret(get_workspace_endpoint(request, key), by=request.actor)
    return render_webhook_secret(request, endpoint, secret)


@require_permission(Permission.MANAGE_KEYS, NOT_REVIEWED)
@require_POST
def test_webhook_view(request: WorkspaceRequest, key: int) -> HttpResponse:
    endpoint = get_workspace_endpoint(request, key)
    text = _("The test event will be sent within seconds. Reload the page to see the response.")
    return run_action(request, endpoint, lambda: send_test_event(endpoint, by=request.actor), text)


@require_permission(Permission.MANAGE_KEYS, NOT_REVIEWED)
@require_POST
def toggle_webhook_view(request: WorkspaceRequest, key: int) -> HttpResponse:
    endpoint = get_workspace_endpoint(request, key)
    status = EndpointStatus.DISABLED if endpoint.is_enabled else EndpointStatus.ENABLED
    text = (
        _("Endpoint disabled.")
        if endpoint.is_enabled
        else _("Endpoint enabled. It receives events from now on.")
    )
    return run_action(
        request, endpoint, lambda: set_endpoint_status(endpoint, status, by=request.actor), text
    )


@require_permission(Permission.MANAGE_KEYS, NOT_REVIEWED)
@require_POST
def redeliver_view(request: WorkspaceRequest, key: int, delivery: int) -> HttpResponse:
    endpoint = get_workspace_endpoint(request, key)
    rows = list_deliveries(endpoint).select_related("endpoint", "event")
    row = get_object_or_404(rows, pk=delivery)
    text = _("The event will be sent again within seconds.")
    return run_action(request, endpoint, lambda: redeliver(row, by=request.actor), text)


@require_permission(Permission.MANAGE_KEYS, NOT_REVIEWED)
@require_POST
def delete_webhook_view(request: WorkspaceRequest, key: int) -> HttpResponse:
    endpoint = get_workspace_endpoint(request, key)
    delete_endpoint(endpoint, by=request.actor)
    messages.success(request, _("“%(name)s” deleted.") % {"name": endpoint.name})
    return redirect("webhooks:list", request.workspace.slug)


def run_action(
    request: WorkspaceRequest, endpoint: WebhookEndpoint, action: Callable[[], object], text: str
) -> HttpResponse:
    try:
        action()
    except DomainError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, text)
    return redirect("webhooks:detail", request.workspace.slug, endpoint.pk)


@sensitive_variables("secret")
def render_webhook_secret(request: WorkspaceRequest, endpoint: WebhookEndpoint, secret: str) -> HttpResponse:
    """Render the page that shows a new secret; no other page contains it."""
    context: dict[str, Any] = {"endpoint": endpoint, "secret": secret}
    response = render(request, "personas/webhooks/secret.html", context)
    response["Cache-Control"] = "no-store"
    return response


def add_form_errors(form: EndpointForm, error: DomainError) -> None:
    if isinstance(error, InvalidInput):
        form.add_service_errors(error)
    else:
        form.add_error(None, error.message)


def require_webhook_manager(request: WorkspaceRequest) -> None:
    """Raise PermissionDenied unless the member may manage webhooks, as for keys."""
    if not has_permission(request.membership.role, Permission.MANAGE_KEYS):
        raise PermissionDenied(describe_required_roles(Permission.MANAGE_KEYS))


def get_workspace_endpoint(request: WorkspaceRequest, key: int) -> WebhookEndpoint:
    return get_object_or_404(list_endpoints(request.workspace), pk=key)


urls = (
    [
        path("", index, name="list"),
        path("new/", new, name="new"),
        path("<int:key>/", detail, name="detail"),
        path("<int:key>/edit/", edit, name="edit"),
        path("<int:key>/rotate/", rotate_secret_view, name="rotate"),
        path("<int:key>/test/", test_webhook_view, name="test"),
        path("<int:key>/toggle/", toggle_webhook_view, name="toggle"),
        path("<int:key>/delete/", delete_webhook_view, name="delete"),
        path("<int:key>/deliveries/<int:delivery>/redeliver/", redeliver_view, name="redeliver"),
    ],
    "webhooks",
)
