"""Proof: verify the whole record, see the last result, and take away keys and checkpoints."""

from collections.abc import Iterator
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from personas.roles import Permission
from personas.tenancy.middleware import WorkspaceRequest, needs
from prompts.integrity.checkpoints import NoSigningKey, public_key_told, signed_of
from prompts.integrity.fault_descriptions import blamed
from prompts.integrity.services import request_verification
from prompts.models import Checkpoint, SigningKey, VerificationRun
from prompts.page_lookup import bounded
from prompts.proof.checkpoints import checkpoint_line
from prompts.tasks import dispatch_verification

SHOWN_CHECKPOINTS, SHOWN_RUNS = 12, 6


def show(request: WorkspaceRequest) -> HttpResponse:
    checkpoints = Checkpoint.objects.in_workspace(request.workspace).order_by("-sequence").defer("heads")
    context = look(request) | {
        "checkpoints": list(checkpoints[:SHOWN_CHECKPOINTS]),
        "keys": SigningKey.objects.in_workspace(request.workspace).order_by("-pk"),
        "key_in_use": key_in_use(),
    }
    return render(request, "prompts/verify/show.html", context)


def look(request: WorkspaceRequest) -> dict[str, Any]:
    """The last look that ended, and the one under way."""
    runs = list(VerificationRun.objects.in_workspace(request.workspace).order_by("-pk")[:SHOWN_RUNS])
    last = next((run for run in runs if run.is_over), None)
    faults = last.result.get("faults", []) if last else []
    told = blamed(request.workspace, faults) if faults else []
    return {
        "under_way": runs[0] if runs and not runs[0].is_over else None,
        "last": last,
        "earlier": [run for run in runs if run.is_over and run is not last],
        "first": told[0] if told else None,
        "others": told[1:],
        "mark": mark_of(runs),
    }


def mark_of(runs: list[VerificationRun]) -> str:
    return f"{runs[0].pk}-{runs[0].state}" if runs else "none"


def key_in_use() -> str:
    try:
        return public_key_told()[0]
    except NoSigningKey:
        return ""


def live(request: WorkspaceRequest) -> HttpResponse:
    """The moving part of the page; empty-handed while nothing has changed."""
    context = look(request)
    if request.GET.get("seen") == context["mark"]:
        return HttpResponse(status=204)
    return render(request, "prompts/verify/_look.html", context | {"is_news": True})


@needs(Permission.EDIT)
@require_POST
def run(request: WorkspaceRequest) -> HttpResponse:
    asked = request_verification(request.workspace, by=request.actor)
    dispatch_verification(asked)
    messages.success(request, _("The record is being verified."))
    return redirect(reverse("verify:show", args=[request.workspace.slug]))


def key(request: WorkspaceRequest, key: int) -> HttpResponse:
    """A public key that has signed here."""
    row = get_object_or_404(SigningKey.objects.in_workspace(request.workspace), pk=bounded(key))
    answer = HttpResponse(row.public_key, content_type="application/x-pem-file")
    return taken(answer, f"dramatis-{row.key_id}.pem")


def checkpoints(request: WorkspaceRequest) -> HttpResponse:
    """All of them, in the form of the second copy, to be kept elsewhere."""
    answer = HttpResponse(checkpoint_lines(request), content_type="application/jsonl")
    return taken(answer, f"checkpoints-{request.workspace.slug}.jsonl")


def checkpoint_lines(request: WorkspaceRequest) -> Iterator[bytes]:
    rows = Checkpoint.objects.in_workspace(request.workspace).order_by("sequence")
    for row in rows.iterator(chunk_size=100):
        yield checkpoint_line(signed_of(row)).encode()


def taken(answer: HttpResponse, name: str) -> HttpResponse:
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


urlpatterns: list[URLPattern] = [
    path("", show, name="show"),
    path("live/", live, name="live"),
    path("run/", run, name="run"),
    path("keys/<int:key>/", key, name="key"),
    path("checkpoints/", checkpoints, name="checkpoints"),
]
urls = (urlpatterns, "verify")
