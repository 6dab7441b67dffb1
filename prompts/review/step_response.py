"""The page and the dialog of the review step. Confirming them sends the same request with a token."""

import base64
import binascii
import json
from typing import Any
from urllib.parse import urlsplit

from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import resolve
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from personas.tenancy.middleware import WorkspaceRequest
from personas.ui.responses import get_back_url
from personas.ui.review_tokens import REVIEWED_FIELD, create_review_token
from prompts.review.change_review import list_approvers
from prompts.review.services import ActionReview

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
    "adopt": _("Approve"),
    "reject": _("Revert"),
    "decide": _("Approve"),
    "supersede": _("Replace"),
    "roll-back": _("Roll back"),
    "follow": _("Resume"),
    "label": _("Move label"),
    "rebuild": _("Rebuild"),
    "erase": _("Erase"),
    "carry-out": _("Release"),
    "override": _("Release"),
    "import": _("Import"),
    "bulk": _("Apply"),
    "tick": _("Complete"),
    "waive": _("Waive"),
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
