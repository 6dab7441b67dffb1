"""Integrity pages: start a verification, show results, download public keys and checkpoints."""

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from personas.models import Workspace
from personas.roles import Permission
from personas.tenancy.middleware import WorkspaceRequest, require_permission
from personas.ui.review import NotReviewed
from prompts.evidence.integrity.checkpoint_signer import NoSigningKey, get_public_key, get_signed_checkpoint
from prompts.evidence.integrity.fault_descriptions import describe_faults
from prompts.evidence.integrity.services import request_verification
from prompts.evidence.integrity.trusted_keys import get_trusted_keys
from prompts.models import Checkpoint, SigningKey, VerificationRun
from prompts.page_lookup import check_url_number
from prompts.proof.checkpoints import format_checkpoint_line
from prompts.tasks import enqueue_verification

MAX_SHOWN_CHECKPOINTS, MAX_SHOWN_RUNS = 12, 6


def index(request: WorkspaceRequest) -> HttpResponse:
    checkpoints = Checkpoint.objects.in_workspace(request.workspace).order_by("-sequence").defer("heads")
    context = build_runs_context(request) | {
        "checkpoints": list(checkpoints[:MAX_SHOWN_CHECKPOINTS]),
        "keys": SigningKey.objects.in_workspace(request.workspace).order_by("-pk"),
        "key_in_use": find_active_key_id(request),
    }
    return render(request, "prompts/integrity/show.html", context)


def build_runs_context(request: WorkspaceRequest) -> dict[str, Any]:
    """Build the context for the running, the last and the earlier verification runs."""
    runs = list(VerificationRun.objects.in_workspace(request.workspace).order_by("-pk")[:MAX_SHOWN_RUNS])
    last = next((run for run in runs if run.is_over), None)
    faults = last.result.get("faults", []) if last else []
    descriptions = describe_faults(request.workspace, faults) if faults else []
    return {
        "under_way": runs[0] if runs and not runs[0].is_over else None,
        "last": last,
        "earlier": [run for run in runs if run.is_over and run is not last],
        "first": descriptions[0] if descriptions else None,
        "others": descriptions[1:],
        "mark": format_runs_mark(runs),
    }


def format_runs_mark(runs: list[VerificationRun]) -> str:
    return f"{runs[0].pk}-{runs[0].status}" if runs else "none"


def find_active_key_id(request: WorkspaceRequest) -> str:
    """Return the id of the key that signs; an empty text if it cannot be used.

    A process without the private key shows the key that signed last, if it is trusted.
    """
    try:
        trusted = get_trusted_keys()
        if settings.PRODUCTION and not settings.DRAMATIS_SIGNING_KEY:
            rows = Checkpoint.objects.in_workspace(request.workspace).order_by("-sequence")
            key_id = rows.values_list("key_id", flat=True).first() or next(iter(trusted))
            return key_id if key_id in trusted else ""
        return get_public_key()[0]
    except NoSigningKey:
        return ""


def verification_status(request: WorkspaceRequest) -> HttpResponse:
    """Render the part of the page that the browser polls; return 204 if it has not changed."""
    context = build_runs_context(request)
    if request.GET.get("seen") == context["mark"]:
        return HttpResponse(status=204)
    return render(request, "prompts/integrity/_look.html", context | {"is_news": True})


@require_permission(Permission.EDIT, NotReviewed("verifies the hash chains"))
@require_POST
def start_verification(request: WorkspaceRequest) -> HttpResponse:
    run = request_verification(request.workspace, by=request.actor)
    enqueue_verification(run)
    messages.success(request, _("Verification started."))
    return redirect(reverse("integrity:show", args=[request.workspace.slug]))


def download_public_key(request: WorkspaceRequest, key: int) -> HttpResponse:
    row = get_object_or_404(SigningKey.objects.in_workspace(request.workspace), pk=check_url_number(key))
    response = HttpResponse(row.public_key, content_type="application/x-pem-file")
    return set_attachment_name(response, f"dramatis-{row.key_id}.pem")


def download_checkpoints(request: WorkspaceRequest) -> HttpResponse:
    """Download all checkpoints in the format of the file copy, for storage elsewhere."""
    response = HttpResponse(iterate_checkpoint_lines(request.workspace), content_type="application/jsonl")
    return set_attachment_name(response, f"checkpoints-{request.workspace.slug}.jsonl")


def iterate_checkpoint_lines(workspace: Workspace) -> Iterator[str]:
    rows = Checkpoint.objects.in_workspace(workspace).order_by("sequence")
    for row in rows.iterator(chunk_size=100):
        yield format_checkpoint_line(get_signed_checkpoint(row))


def set_attachment_name(response: HttpResponse, name: str) -> HttpResponse:
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


urlpatterns: list[URLPattern] = [
    path("", index, name="show"),
    path("live/", verification_status, name="live"),
    path("run/", start_verification, name="run"),
    path("keys/<int:key>/", download_public_key, name="key"),
    path("checkpoints/", download_checkpoints, name="checkpoints"),
]
urls = (urlpatterns, "integrity")
