"""Add comments to memories and to lines of versions, and delete them."""

from collections.abc import Collection, Sequence

from django.db import transaction
from django.utils.translation import gettext as _

from personas.actors import Actor
from personas.audit.services import write_audit_event
from personas.errors import InvalidInput
from personas.events.services import record_event
from personas.models import Memory, Record
from personas.records.services import check_not_erased, convert_save_errors
from prompts.errors import NotAllowed
from prompts.models import Comment, PromptVersion
from prompts.publishing.comments.selectors import get_version_lines, list_comments_on


@transaction.atomic
def comment_on_memory(memory: Memory, *, text: str, by: Actor) -> Comment:
    check_not_erased(memory)
    comment = save_new_comment(Comment(workspace_id=memory.workspace_id, memory=memory), text, by=by)
    # The label of this event contains text of the memory. An erasure of the memory replaces that label.
    after = {"comment_id": comment.pk}
    write_audit_event(memory.workspace_id, "commented", "memory", memory.pk, str(memory), by=by, after=after)
    data = {"memory_id": memory.pk, "comment_id": comment.pk}
    record_event(memory.workspace_id, "memory.commented", data, by=by)
    return comment


@transaction.atomic
def comment_on_line(version: PromptVersion, line: int, *, text: str, by: Actor) -> Comment:
    """Comment on a line of a version. Raise InvalidInput if the version has no such line."""
    count = len(get_version_lines(version))
    if not 1 <= line <= count:
        raise InvalidInput.on("line", _("Enter a line number from 1 to %(count)s.") % {"count": count})
    comment = Comment(workspace_id=version.workspace_id, version=version, line=line)
    save_new_comment(comment, text, by=by)
    after = {"comment_id": comment.pk, "line": line}
    write_audit_event(
        version.workspace_id, "commented", "version", version.pk, str(version), by=by, after=after
    )
    prompt = version.prompt
    data = {
        "agent": prompt.agent.slug,
        "channel": prompt.channel.slug,
        "prompt_id": prompt.pk,
        "version_id": version.pk,
        "number": version.number,
        "line": line,
        "comment_id": comment.pk,
    }
    record_event(version.workspace_id, "version.commented", data, by=by)
    return comment


def save_new_comment(comment: Comment, text: str, *, by: Actor) -> Comment:
    comment.author, comment.author_label, comment.text = by.user, by.label, text.strip()
    with convert_save_errors():
        comment.full_clean(exclude=["author", "memory", "version", "line"])
        comment.save()
    return comment


@transaction.atomic
def delete_comment(comment: Comment, *, by: Actor) -> None:
    """Delete a comment; raise NotAllowed unless the actor wrote it. The audit event is without the text."""
    if by.user is None or by.user.pk != comment.author_id:
        raise NotAllowed(_("You can delete only your own comments."))
    workspace, before = comment.workspace_id, {"comment_id": comment.pk}
    kind, key, label = "memory", comment.memory_id or 0, str(comment.memory or "")
    if version := comment.version:
        kind, key, label = "version", version.pk, str(version)
    comment.delete()
    write_audit_event(workspace, "comment deleted", kind, key, label, by=by, before=before)


def erase_comments(record: Record, version_ids: Collection[int], texts: Sequence[str]) -> None:
    """Delete the comments on an erased memory, and those on versions with the record that quote its text."""
    if isinstance(record, Memory):
        list_comments_on(record).delete()
    comments = Comment.objects.in_workspace(record.workspace_id)
    rows = comments.filter(version__isnull=False).values_list("pk", "version_id", "text")
    quoting = [
        pk for pk, version, text in rows if version in version_ids and any(part in text for part in texts)
    ]
    comments.filter(pk__in=quoting).delete()
