"""Comments on memories and versions: a panel that their pages load, and that updates itself."""

import re
from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from personas.errors import DomainError
from personas.records.list_views import get_query_param
from personas.roles import Permission
from personas.selectors import list_memories
from personas.tenancy.middleware import WorkspaceRequest, require_permission
from personas.ui.review import NotReviewed
from prompts.models import Comment
from prompts.page_lookup import get_prompt_or_404, get_version_or_404
from prompts.publishing.comments.forms import CommentForm, LineCommentForm
from prompts.publishing.comments.selectors import (
    ShownComment,
    get_comments_mark,
    get_version_lines,
    list_memory_comments,
    list_version_comments,
)
from prompts.publishing.comments.services import comment_on_line, comment_on_memory, delete_comment

NOT_REVIEWED = NotReviewed("comments on memories and versions")

FRAGMENT_ID = "comments"
# How many lines the form offers to comment on.
MAX_LINES = 500
LINE_NUMBER = r"[1-9]\d{0,7}"


@require_permission(Permission.READ, NOT_REVIEWED)
def memory_comments(request: WorkspaceRequest, key: int) -> HttpResponse:
    """Show the comments on a memory, and add one. Every member may comment."""
    memory = get_object_or_404(list_memories(request.workspace), pk=check_url_id(key))
    back = reverse("memories:detail", args=[request.workspace.slug, memory.pk])
    if request.method == "POST":
        form = CommentForm(request.POST)
        if form.is_valid():
            add_comment(request, lambda: comment_on_memory(memory, by=request.actor, **form.cleaned_data))
        else:
            messages.error(request, _("Enter a comment of at most 4,000 characters."))
        return redirect(f"{back}#{FRAGMENT_ID}")
    return render_comments(request, list_memory_comments(memory), CommentForm(), back)


@require_permission(Permission.READ, NOT_REVIEWED)
def version_comments(request: WorkspaceRequest, prompt: int, number: int) -> HttpResponse:
    """Show the comments on the lines of a version, and add one. Every member may comment.

    With the parameter `lines`, such as `3-8`, only comments on these lines, and the form to add one.
    """
    version = get_version_or_404(get_prompt_or_404(request, prompt), number)
    back = reverse("versions:detail", args=[request.workspace.slug, prompt, number])
    if request.method == "POST":
        form = LineCommentForm(request.POST)
        if not form.is_valid():
            messages.error(request, _("Enter a line number and a comment of at most 4,000 characters."))
            return redirect(f"{back}#{FRAGMENT_ID}")
        add_comment(request, lambda: comment_on_line(version, by=request.actor, **form.cleaned_data))
        return redirect(f"{back}?line={form.cleaned_data['line']}#{FRAGMENT_ID}")
    comments, lines = list_version_comments(version), parse_line_range(get_query_param(request, "lines"))
    if lines is None:
        return render_comments(request, comments, None, back)
    texts = enumerate(get_version_lines(version), 1)
    choices = [(at, text.strip()) for at, text in texts if at in lines and text.strip()]
    shown = [one for one in comments if one.comment.line in lines]
    line = parse_line(get_query_param(request, "line"))
    line_form = LineCommentForm(lines=choices[:MAX_LINES], line=line) if choices else None
    return render_comments(request, shown, line_form, back, f"{lines[0]}-{lines[-1]}")


def parse_line(text: str) -> int:
    """Return the number of a line; 0 if the text is not one."""
    return int(text) if re.fullmatch(LINE_NUMBER, text, re.ASCII) else 0


def parse_line_range(text: str) -> range | None:
    """Return the numbers of the lines from "first-last"; None if it is something else."""
    match = re.fullmatch(f"({LINE_NUMBER})-({LINE_NUMBER})", text, re.ASCII)
    lines = range(int(match[1]), int(match[2]) + 1) if match else None
    return lines or None


@require_POST
@require_permission(Permission.READ, NOT_REVIEWED)
def delete_view(request: WorkspaceRequest, key: int) -> HttpResponse:
    """Delete a comment of the user. Those of others are not found."""
    rows = Comment.objects.in_workspace(request.workspace).select_related("version")
    comment = get_object_or_404(rows, pk=check_url_id(key), author=request.user)
    if version := comment.version:
        page = reverse("versions:detail", args=[request.workspace.slug, version.prompt_id, version.number])
        page = f"{page}?line={comment.line}"
    else:
        page = reverse("memories:detail", args=[request.workspace.slug, comment.memory_id])
    delete_comment(comment, by=request.actor)
    return redirect(f"{page}#{FRAGMENT_ID}")


def check_url_id(key: int) -> int:
    if key >= 2**63:
        raise Http404("The number is too large.")
    return key


def add_comment(request: WorkspaceRequest, action: Any) -> None:
    try:
        action()
    except DomainError as error:
        messages.error(request, error.message)


def render_comments(
    request: WorkspaceRequest,
    comments: Sequence[ShownComment],
    form: CommentForm | None,
    back: str,
    lines: str = "",
) -> HttpResponse:
    """Render the panel for the page that loads it, the list for its updates, or a page without scripts."""
    mark = get_comments_mark(comments)
    if request.GET.get("seen") == mark:
        return HttpResponse(status=204)
    context: dict[str, Any] = {
        "comments": comments,
        "mark": mark,
        "comment_form": form,
        "back": back,
        "lines": lines,
    }
    name = "page" if not request.headers.get("HX-Request") else "_list" if "seen" in request.GET else "_panel"
    return render(request, f"prompts/comments/{name}.html", context)


urlpatterns: list[URLPattern] = [
    path("memories/<int:key>/", memory_comments, name="memory"),
    path("versions/<int:prompt>/<int:number>/", version_comments, name="version"),
    path("<int:key>/delete/", delete_view, name="delete"),
]
urls = (urlpatterns, "comments")
