"""Queries for comments, and the people whom they concern."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.db.models import QuerySet

from personas.models import Event, Membership, Memory
from prompts.models import Comment, PromptVersion
from prompts.publishing.versions.selectors import load_version_texts

MAX_DETAIL_LENGTH = 200


@dataclass(frozen=True)
class ShownComment:
    """A comment, and the present text of its line; empty for a memory or if the text was erased."""

    comment: Comment
    quote: str = ""


def get_version_lines(version: PromptVersion) -> list[str]:
    """Return the lines of the text of a version."""
    return load_version_texts(version.workspace_id, [version.pk])[version.pk].split("\n")


def list_comments_on(subject: Memory | PromptVersion) -> QuerySet[Comment]:
    rows = Comment.objects.in_workspace(subject.workspace_id)
    return rows.filter(memory=subject) if isinstance(subject, Memory) else rows.filter(version=subject)


def list_memory_comments(memory: Memory) -> list[ShownComment]:
    return [ShownComment(row) for row in list_comments_on(memory).order_by("pk")]


def list_version_comments(version: PromptVersion) -> list[ShownComment]:
    """List the comments on a version by line, then by time."""
    rows = list(list_comments_on(version).order_by("line", "pk"))
    lines = get_version_lines(version) if rows else []
    return [
        ShownComment(row, lines[row.line - 1] if row.line and row.line <= len(lines) else "") for row in rows
    ]


def get_comments_mark(comments: Sequence[ShownComment]) -> str:
    """Return a text that changes when a comment is added or deleted."""
    return f"{len(comments)}.{max((shown.comment.pk for shown in comments), default=0)}"


# --- notifications ---------------------------------------------------------------------------------------


def list_memory_participants(event: Event) -> set[int]:
    """Return the ids of the user who added the memory, and of those who commented on it."""
    key = event.data["memory_id"]
    comments = Comment.objects.in_workspace(event.workspace_id).filter(memory=key, author__isnull=False)
    memories = Memory.objects.in_workspace(event.workspace_id).filter(pk=key, author__isnull=False)
    return {*comments.values_list("author_id", flat=True), *memories.values_list("author_id", flat=True)}


def list_version_participants(event: Event) -> set[int]:
    """Return the ids of the user whose change led to the version, and of those who commented on it."""
    key = event.data["version_id"]
    comments = Comment.objects.in_workspace(event.workspace_id).filter(version=key, author__isnull=False)
    versions = PromptVersion.objects.in_workspace(event.workspace_id).filter(pk=key)
    labels = list(versions.values_list("author_label", flat=True))
    members = Membership.objects.in_workspace(event.workspace_id).filter(user__email__in=labels)
    return {*comments.values_list("author_id", flat=True), *members.values_list("user_id", flat=True)}


COMMENT_RECIPIENTS: dict[str, Callable[[Event], set[int]]] = {
    "memory.commented": list_memory_participants,
    "version.commented": list_version_participants,
}


def list_comment_details(workspace_id: int, events: Sequence[Event]) -> dict[int, str]:
    """Return the beginnings of the comments of these events."""
    ids = {event.pk: event.data["comment_id"] for event in events if "comment_id" in event.data}
    rows = Comment.objects.in_workspace(workspace_id).filter(pk__in=ids.values())
    texts = dict(rows.values_list("pk", "text")) if ids else {}
    return {pk: " ".join(texts.get(key, "").split())[:MAX_DETAIL_LENGTH] for pk, key in ids.items()}
