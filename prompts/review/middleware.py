"""Middleware that adds the review step to every page action of a workspace."""

import base64
import binascii
import json
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import urlsplit

from django.contrib import messages
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import resolve
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from personas.tenancy.middleware import VIEW_RUNNERS, WorkspaceRequest
from personas.ui.responses import REVIEWED_FIELD, create_review_token, get_back_url, read_review_token
from prompts.labels.change_recorder import ChangeRecorder, get_change_recorder, record_changes
from prompts.review.change_review import list_approvers
from prompts.review.services import ActionReview, DryRun, ReviewRequired, run_with_review

# These write no records that prompts are built from. If one moves production, it fails.
EXEMPT_NAMESPACES = {
    "api-keys": "API keys",
    "comments": "comments on memories and versions",
    "webhooks": "endpoints that get events",
    "members": "members and invitations",
    "impact": "shows what saving would change, saves nothing",
    "search": "search",
    "integrity": "verifies the hash chains",
    "labels": "label protection",
    "replay": "shows what was served",
    "ledger": "reads the ledger",
}
EXEMPT_VIEWS = {
    "workspace-settings": "name of the workspace, release policy of new agents, second factors",
    "workspace-slug": "slug of the workspace",
    "delete-workspace": "closes the workspace; no prompt is served after it",
    "skills:check": "validates a text that is not saved",
    "quick-start:preview": "shows the prompt of an agent that is not saved",
    "quick-start:key": "creates an API key",
    "studio:preview": "shows the prompt with a draft",
    "studio:layouts": "compares layouts",
    "studio:state": "shows the state of the draft",
    "studio:save": "saves a draft, which no prompt uses",
    "studio:discard": "deletes a draft",
    "fleet:dismiss": "hides the first steps",
    "releases:new": "requests a release",
    "releases:request-again": "requests the latest versions of a release; publishing them is another action",
    "releases:approve": "approves a release, which is published by another action",
    "releases:reject": "rejects a release",
    "releases:withdraw": "withdraws a release",
}
# These let workers or the settings of a source change prompts.
AUTOMATIC_VIEWS = {
    "sources:refresh": "scans a source; files are used at once only if its automatic approval is on",
    "sources:upload": "pushes files; they are used at once only if automatic approval of the source is on",
    "sources:confirm-removal": "approves the removal of files that a scan missed",
    "builds:everything": "rebuilds the same records; its page asks first, with the number of prompts",
    "fleet:demo": "creates the demo workspace's records",
}


def is_exempt(view_name: str) -> bool:
    return view_name in EXEMPT_VIEWS or view_name.partition(":")[0] in EXEMPT_NAMESPACES


# Request header of scripts that ask for the review before they send the form. Response header of a review.
REVIEW_HEADER = "Dramatis-Review"


class ReviewMiddleware:
    """Run the POST requests to pages of a workspace with `run_with_review`.

    It is the last middleware, because its `process_view` calls the view.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., HttpResponseBase], args: Any, kwargs: dict[str, Any]
    ) -> HttpResponseBase | None:
        if request.method != "POST" or not hasattr(request, "workspace"):
            return None
        if getattr(view, "uses_view_runners", False):
            # It calls `run_reviewed_view` itself: its request to sign in again is an exception, which
            # middleware handles only if the view raises it.
            return None
        return run_reviewed_view(cast("WorkspaceRequest", request), lambda: view(request, *args, **kwargs))


def run_reviewed_view(request: WorkspaceRequest, call: Callable[[], HttpResponseBase]) -> HttpResponseBase:
    """Run a view with the review step; respond with the review if it is needed."""
    if request.method != "POST" or get_change_recorder() is not None:
        return call()
    # After a sign-in in between, the request has no `resolver_match`.
    name = resolve(request.path_info).view_name
    if name in AUTOMATIC_VIEWS:
        return call()
    if is_exempt(name):
        with record_changes(ChangeRecorder(locked_view=name)):
            return call()
    token = request.POST.get(REVIEWED_FIELD, "")
    seen = read_review_token(token, request.user.pk, request.path) if token else None
    is_question = request.headers.get(REVIEW_HEADER) == "ask"
    restore_files(request)
    try:
        return run_with_review(request.workspace, call, seen=seen, is_question=is_question)
    except DryRun:
        discard_messages(request)
        return HttpResponse(status=204)
    except ReviewRequired as required:
        discard_messages(request)
        response = render_review_step(request, required.review, is_repeated=seen is not None)
        response[REVIEW_HEADER] = "required"
        return response


def discard_messages(request: HttpRequest) -> None:
    """Remove the messages of an action that was rolled back."""
    storage: Any = messages.get_messages(request)
    storage._queued_messages.clear()


# Views that require a recent sign-in are called again after it, without this middleware.
VIEW_RUNNERS.append(run_reviewed_view)


# Uploaded files are sent again in form fields with this prefix, as JSON with name, type and Base64.
FILE_FIELD = "review-file:"
# Fields that the review adds or replaces.
OWN_FIELDS = {"csrfmiddlewaretoken", REVIEWED_FIELD, "change_message"}
# The verb of the button by the last part of the view's name.
VERBS: dict[str, str | Promise] = {
    "new": _("Create"),
    "revert": _("Restore"),
    "restore": _("Restore"),
    "archive": _("Archive"),
    "approve": _("Approve"),
    "approve-selected": _("Approve"),
    "reject": _("Revert"),
    "decide": _("Approve"),
    "supersede": _("Replace"),
    "roll-back": _("Roll back"),
    "unpin": _("Resume"),
    "label": _("Move label"),
    "rebuild": _("Rebuild"),
    "erase": _("Erase"),
    "publish": _("Release"),
    "override": _("Release"),
    "import": _("Import"),
    "bulk": _("Apply"),
    "tick": _("Complete"),
    "waive": _("Allow"),
    "ignore": _("Ignore"),
}

BULK_VERBS: dict[str, str | Promise] = {
    "approve": _("Approve"),
    "reject": _("Reject"),
    "archive": _("Archive"),
    "restore": _("Restore"),
    "rebuild": _("Rebuild"),
    "roll-back": _("Roll back"),
}


def render_review_step(request: WorkspaceRequest, action: ActionReview, *, is_repeated: bool) -> HttpResponse:
    """Render the review of the request, as a page or for scripts as the content of a dialog."""
    name = resolve(request.path_info).url_name or ""
    effect = action.effect
    context: dict[str, Any] = {
        "action": action,
        "review": action.review,
        "effect": effect,
        "button": effect.format_button(get_verb(request, name)),
        "approvers": list_approvers(request.workspace, request.user) if effect.waiting else [],
        "fields": list_fields(request),
        "token": create_review_token(request.user.pk, request.path, action.digest),
        "token_field": REVIEWED_FIELD,
        "path": request.get_full_path(),
        "back": get_origin_path(request),
        "is_repeated": is_repeated,
        "has_message": name == "edit",
    }
    is_dialog = bool(request.headers.get("HX-Request") or request.headers.get("Dramatis-Review"))
    response = render(request, f"prompts/review/{'_step' if is_dialog else 'step'}.html", context)
    response["Dramatis-Review-Token"] = context["token"]
    if request.headers.get("HX-Request"):
        response["HX-Retarget"] = "#dr-review-body"
        response["HX-Reswap"] = "innerHTML"
        response["HX-Trigger-After-Swap"] = "dr:review"
    return response


def get_verb(request: WorkspaceRequest, view_name: str) -> str:
    """Return the verb of the button. Bulk actions and the memory board name their action in the form."""
    names = [request.POST.get("verb", ""), *(name for name in ("approve", "reject") if name in request.POST)]
    bulk_name = next((name for name in names if name in BULK_VERBS), "")
    return str(BULK_VERBS[bulk_name] if bulk_name else VERBS.get(view_name, _("Save")))


def list_fields(request: WorkspaceRequest) -> list[tuple[str, str]]:
    """Return the fields of the request, to send them again; uploaded files as text."""
    fields = [
        (name, value) for name, values in request.POST.lists() if name not in OWN_FIELDS for value in values
    ]
    files: dict[str, Any] = request.FILES.dict()
    for name, file in files.items():
        file.seek(0)
        data = {"name": file.name, "type": file.content_type, "data": base64.b64encode(file.read()).decode()}
        fields.append((f"{FILE_FIELD}{name}", json.dumps(data)))
    if request.headers.get("HX-Request") and "back" not in request.POST:
        fields.append(("back", get_origin_path(request)))
    return fields


def restore_files(request: WorkspaceRequest) -> None:
    """Restore the uploaded files from the fields of `list_fields`."""
    files: Any = request.FILES
    for field, value in request.POST.items():
        if not field.startswith(FILE_FIELD):
            continue
        try:
            file = json.loads(str(value))
            content = base64.b64decode(file["data"], validate=True)
            files[field.removeprefix(FILE_FIELD)] = SimpleUploadedFile(file["name"], content, file["type"])
        except (ValueError, KeyError, TypeError, binascii.Error):
            continue


def get_origin_path(request: WorkspaceRequest) -> str:
    """Return the path of the page that sent the form."""
    parts = urlsplit(request.headers.get("HX-Current-URL") or request.headers.get("Referer") or "")
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    return get_back_url(request, path if path.startswith("/") and not path.startswith("//") else request.path)
