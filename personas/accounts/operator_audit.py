"""Audit of what operators do at /operator/: tenants see it in their audit log, users in their own list."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.db.models import Model

from personas.accounts.models import SecurityEventKind
from personas.accounts.services import record_security_event
from personas.actors import Actor
from personas.audit.services import write_audit_event
from personas.models import Record, User, Workspace
from personas.tenancy.middleware import list_memberships

VIEWED, ACCOUNT_CHANGED = "viewed", "account changed"
# By model name: the kind in the audit log, where it differs from the model name.
AUDIT_KIND_BY_MODEL = {"membership": "member", "auditevent": "audit", "allowedfolder": "allowed_folder"}


def get_row_workspace_id(row: Any) -> int:
    workspace_id: int = row.pk if isinstance(row, Workspace) else row.workspace_id
    return workspace_id


def get_audit_kind(model: type[Model]) -> str:
    """Return the kind of a model's rows in the audit log; records have the kind of their other events."""
    name = str(model._meta.model_name)
    return str(getattr(model, "kind", "") or AUDIT_KIND_BY_MODEL.get(name, name))[:20]


def audit_viewed_row(row: Any, *, by: Actor) -> None:
    """Write to the row's workspace that an operator has opened it.

    Only the label of a record contains its text: an erasure removes it from the events of that record.
    """
    label = str(row) if isinstance(row, Record) else f"{row._meta.verbose_name} {row.pk}"
    write_audit_event(get_row_workspace_id(row), VIEWED, get_audit_kind(type(row)), row.pk, label, by=by)


def audit_viewed_list(model: type[Model], rows: Iterable[Any], *, by: Actor) -> None:
    """Write one event per workspace whose rows an operator has seen in a list, with the ids of its rows."""
    ids: dict[int, list[int]] = defaultdict(list)
    for row in rows:
        ids[get_row_workspace_id(row)].append(row.pk)
    for workspace_id, keys in ids.items():
        label = f"{len(keys)} {model._meta.verbose_name_plural}"
        write_audit_event(workspace_id, VIEWED, get_audit_kind(model), 0, label, by=by, after={"ids": keys})


@transaction.atomic
def audit_account_change(user: User, change: str, *, by: Actor) -> None:
    """Write an account change to the user's own list and to the audit logs of the user's workspaces.

    Each workspace reads what was changed, and nothing about the other workspaces of the user.
    """
    record_security_event(user, SecurityEventKind.ACCOUNT_CHANGED, detail=change, by=by)
    for member in list_memberships(user):
        write_audit_event(
            member.workspace_id,
            ACCOUNT_CHANGED,
            "member",
            member.pk,
            user.email,
            by=by,
            after={"changed": change},
        )


def record_viewed_account(user: User, *, by: Actor) -> None:
    record_security_event(user, SecurityEventKind.ACCOUNT_VIEWED, by=by)
