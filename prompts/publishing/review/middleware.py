"""Middleware that adds the review step to every page action of a workspace."""

from collections.abc import Callable
from functools import partial
from typing import Any, cast
from urllib.parse import urlsplit

from django.contrib.messages.middleware import MessageMiddleware
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render

from personas.tenancy.middleware import WorkspaceRequest
from personas.ui.responses import REVIEWED_FIELD, create_review_token, get_back_url, read_review_token
from personas.ui.review import Automatic, NotReviewed, ReviewDeclaration, Reviewed
from prompts.publishing.labels.change_recorder import ChangeRecorder, get_change_recorder, record_changes
from prompts.publishing.review.change_review import list_approvers
from prompts.publishing.review.services import ActionReview, DryRun, ReviewRequired, run_with_review

View = Callable[..., HttpResponseBase]
# In requests: a script asks for the review before it sends the form. In responses: the content is a review.
REVIEW_HEADER = "Dramatis-Review"
# Fields that the review form sets itself, so they are not copied from the request.
OWN_FIELDS = {"csrfmiddlewaretoken", REVIEWED_FIELD, "change_message"}


class ReviewMiddleware:
    """Run the POST requests to pages of a workspace with the review step.

    It is the last middleware, because its `process_view` calls the view.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: View, args: Any, kwargs: dict[str, Any]
    ) -> HttpResponseBase | None:
        if request.method != "POST" or not hasattr(request, "workspace"):
            return None
        if getattr(view, "runs_review_step", False):
            # The view runs the step itself. It may raise an exception to ask the user to sign in again, which
            # middleware handles only if the view raises it.
            return None
        call = partial(view, request, *args, **kwargs)
        return run_review_step(cast("WorkspaceRequest", request), view, call)


def run_review_step(
    request: WorkspaceRequest, view: View, call: Callable[[], HttpResponseBase]
) -> HttpResponseBase:
    """Call a view as it declares; respond with the review if it is needed."""
    if request.method != "POST" or get_change_recorder() is not None:
        return call()
    declaration = get_declaration(view)
    if isinstance(declaration, Automatic):
        return call()
    if isinstance(declaration, NotReviewed):
        with record_changes(ChangeRecorder(locked_view=f"{view.__module__}.{view.__qualname__}")):
            return call()
    token = request.POST.get(REVIEWED_FIELD, "")
    seen = read_review_token(token, request.user.pk, request.path) if token else None
    is_question = request.headers.get(REVIEW_HEADER) == "ask"
    try:
        return run_with_review(request.workspace, call, seen=seen, is_question=is_question)
    except DryRun:
        discard_messages(request)
        return HttpResponse(status=204)
    except ReviewRequired as required:
        discard_messages(request)
        response = render_review_step(request, declaration, required.review, is_repeated=seen is not None)
        response[REVIEW_HEADER] = "required"
        return response


def get_declaration(view: View) -> ReviewDeclaration:
    """Return what the view declares. A view without a declaration is reviewed."""
    return cast("ReviewDeclaration", getattr(view, "review", Reviewed()))


def discard_messages(request: HttpRequest) -> None:
    """Start again with the stored messages, without those of an action that was rolled back."""
    MessageMiddleware(lambda _: HttpResponse()).process_request(request)


def render_review_step(
    request: WorkspaceRequest, declaration: Reviewed, action: ActionReview, *, is_repeated: bool
) -> HttpResponse:
    """Render the review of the request, as a page or for scripts as the content of a dialog."""
    effect = action.effect
    context: dict[str, Any] = {
        "action": action,
        "review": action.review,
        "effect": effect,
        "button": effect.format_button(declaration.get_verb(request)),
        "approvers": list_approvers(request.workspace, request.user) if effect.waiting else [],
        "fields": list_fields(request, declaration),
        "token": create_review_token(request.user.pk, request.path, action.digest),
        "token_field": REVIEWED_FIELD,
        "path": request.get_full_path(),
        "back": get_origin_path(request),
        "is_repeated": is_repeated,
        "has_message": declaration.has_message,
    }
    is_dialog = bool(request.headers.get("HX-Request") or request.headers.get(REVIEW_HEADER))
    response = render(request, f"prompts/review/{'_step' if is_dialog else 'step'}.html", context)
    response["Dramatis-Review-Token"] = context["token"]
    if request.headers.get("HX-Request"):
        response["HX-Retarget"] = "#dr-review-body"
        response["HX-Reswap"] = "innerHTML"
        response["HX-Trigger-After-Swap"] = "dr:review"
    return response


def list_fields(request: WorkspaceRequest, declaration: Reviewed) -> list[tuple[str, str]]:
    """Return the fields of the request, to send them again; uploaded files as text."""
    form = request.POST.copy()
    files: dict[str, Any] = request.FILES.dict()
    for upload, text_field in declaration.uploads.items():
        if file := files.get(upload):
            file.seek(0)
            form[text_field] = file.read().decode("utf-8-sig")
    if request.headers.get("HX-Request"):
        form.setdefault("back", get_origin_path(request))
    return [(name, value) for name, values in form.lists() if name not in OWN_FIELDS for value in values]


def get_origin_path(request: WorkspaceRequest) -> str:
    """Return the path of the page that sent the form."""
    parts = urlsplit(request.headers.get("HX-Current-URL") or request.headers.get("Referer") or "")
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    return get_back_url(request, path if path.startswith("/") and not path.startswith("//") else request.path)
