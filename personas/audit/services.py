"""Write audit events."""

from typing import Any

import structlog

from core.db.fast import WriteBatch
from personas.actors import Actor
from personas.models import AuditEvent, Record, Workspace


def get_current_request_id() -> str:
    """Return the id of the current request or job from the log context, or an empty string without one."""
    return str(structlog.contextvars.get_contextvars().get("request_id", ""))[:64]


def audit_record_change(
    record: Record,
    verb: str,
    *,
    by: Actor,
    before: dict[str, Any] | None,
    after: dict[str, Any] | None,
    batch: WriteBatch | None = None,
) -> None:
    """Write an audit event about a record, with its values before and after the action `verb`."""
    event = build_audit_event(
        record.workspace_id, verb, record.kind, record.pk, str(record), by=by, before=before, after=after
    )
    AuditEvent.objects.insert([event], batch=batch)


def write_audit_event(
    workspace: Workspace | int,
    verb: str,
    kind: str,
    object_id: int,
    label: str,
    *,
    by: Actor,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> None:
    """Write an audit event about any object, including objects that are not records, such as keys."""
    event = build_audit_event(workspace, verb, kind, object_id, label, by=by, before=before, after=after)
    AuditEvent.objects.insert([event])


def build_audit_event(
    workspace: Workspace | int,
    verb: str,
    kind: str,
    object_id: int,
    label: str,
    *,
    by: Actor,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> AuditEvent:
    """Return an unsaved audit event, for callers that insert several at once."""
    return AuditEvent(
        workspace_id=workspace if isinstance(workspace, int) else workspace.pk,
        verb=verb,
        kind=kind,
        object_id=object_id,
        object_label=label[:254],
        actor=by.user,
        actor_label=by.label,
        before=before,
        after=after,
        request_id=get_current_request_id(),
    )
