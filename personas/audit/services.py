"""Write audit events."""

from typing import Any

import structlog

from personas.actors import Actor
from personas.models import AuditEvent, Record, Workspace


def get_current_request_id() -> str:
    """The id of the request or job being served, or nothing."""
    return str(structlog.contextvars.get_contextvars().get("request_id", ""))[:64]


def audit_record_change(
    record: Record, verb: str, *, by: Actor, before: dict[str, Any] | None, after: dict[str, Any] | None
) -> None:
    """Note one verb carried out on a record."""
    write_audit_event(
        record.workspace_id, verb, record.kind, record.pk, str(record), by=by, before=before, after=after
    )


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
    """Note one verb carried out on anything."""
    build_audit_event(workspace, verb, kind, object_id, label, by=by, before=before, after=after).save(
        force_insert=True
    )


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
    """The same, not yet written."""
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
