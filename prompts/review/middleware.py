"""Middleware that adds the review step to every page action of a workspace."""

from collections.abc import Callable
from typing import Any, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import resolve

from personas.tenancy.middleware import VIEW_RUNNERS, WorkspaceRequest
from personas.ui.review_tokens import REVIEWED_FIELD, read_review_token
from prompts.labels.change_recorder import ChangeRecorder, get_change_recorder, record_changes
from prompts.review.exemptions import AUTOMATIC_VIEWS, is_exempt
from prompts.review.services import DryRun, ReviewRequired, run_with_review
from prompts.review.step_response import render_review_step, restore_files

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
