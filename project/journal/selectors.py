"""List what ended in the database: keys, members, invitations, folders, account security, texts, workspaces.

Endings contain ids, digests and times, and for an erasure its reason and person, as its tombstone does. They
contain no text of records, no email address of an account, and no secret.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import chain
from typing import Any

import structlog
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.db import DatabaseError
from django.db.models import Exists, F, OuterRef, TextField
from django.db.models.functions import Cast

from core.db.expiry import REMOVAL_KIND
from personas.accounts.models import SecurityEvent, SecurityEventKind
from personas.models import ApiKey, AuditEvent, Erasure, Invitation, User
from personas.roles import Role
from personas.tenancy.lost_nodes import list_workspaces_in_scope, query_workspaces
from project.journal.files import Ending, FoundEndings
from prompts.proof.canonical import format_timestamp

log = structlog.get_logger(__name__)

KEY_REVOKED, KEY_SHORTENED = "key_revoked", "key_shortened"
MEMBER_REMOVED, ROLE_CHANGED = "member_removed", "role_changed"
INVITATION_WITHDRAWN, FOLDER_WITHDRAWN = "invitation_withdrawn", "folder_withdrawn"
ACCOUNT_CHANGED, ERASED = "account_changed", "erased"
WORKSPACE_DELETED, WORKSPACE_RESTORED = "workspace_deleted", "workspace_restored"
# Endings read from audit events, by kind and verb of the event: their own rows are deleted or keep no time.
AUDITED_ENDINGS = {
    ("member", "removed"): MEMBER_REMOVED,
    ("member", "left"): MEMBER_REMOVED,
    ("member", "role changed"): ROLE_CHANGED,
    ("allowed_folder", "withdrawn"): FOLDER_WITHDRAWN,
    ("workspace", "deleted"): WORKSPACE_DELETED,
    ("workspace", "restored"): WORKSPACE_RESTORED,
}
PASSWORD_EVENTS = frozenset({SecurityEventKind.PASSWORD_CHANGED, SecurityEventKind.PASSWORD_RESET})
# Security events that may have ended a way into an account: a password, second factor, recovery code, email
# address or operator permission.
ACCOUNT_EVENTS = PASSWORD_EVENTS | {
    SecurityEventKind.SECOND_FACTOR_REMOVED,
    SecurityEventKind.RECOVERY_CODES_GENERATED,
    SecurityEventKind.RECOVERY_CODE_USED,
    SecurityEventKind.EMAIL_REMOVED,
    SecurityEventKind.EMAIL_CHANGED,
    SecurityEventKind.ACCOUNT_CHANGED,
}
# How many workspaces a query of audit events covers. The index of the events begins with the workspace.
CHUNK_SIZE = 500


def list_endings(since: datetime) -> FoundEndings:
    """List the endings of all workspaces since a time, oldest first.

    An error with one kind of ending is logged and does not hide the other kinds. Endings of workspaces on a
    lost node are listed when it is back: until then the list is not complete.
    """
    endings: list[Ending] = []
    failed, skipped_count = [], 0
    for iterate_endings in ENDING_SOURCES:
        try:
            results = query_workspaces(lambda: list(iterate_endings(since)))  # noqa: B023  # called at once
            endings.extend(chain.from_iterable(results))
            skipped_count += results.skipped_count
        # Any error: one damaged row must not keep the other endings out of the journal.
        except Exception as error:
            if isinstance(error, DatabaseError):
                # The connection may be lost, or its transaction aborted: no other query would succeed.
                raise
            log.exception("endings_unreadable", source=iterate_endings.__name__, error=type(error).__name__)
            failed.append(iterate_endings)
    return FoundEndings(
        sorted(endings, key=lambda ending: str(ending["at"])), not failed and not skipped_count
    )


def iterate_ended_keys(since: datetime) -> Iterator[Ending]:
    """Yield revoked keys, and keys whose life a rotation shortened."""
    names = ("workspace_id", "pk", "digest", "revoked_at")
    revoked: Any = ApiKey.unscoped.filter(revoked_at__gte=since).values_list(*names)
    for workspace_id, key_id, digest, at in revoked:
        yield build_ending(KEY_REVOKED, workspace_id, key_id, at, digest=digest)
    successors = ApiKey.unscoped.filter(created_at__gte=since, origin__isnull=False)
    rotations: Any = successors.values_list("workspace_id", "pk", "origin_id", "created_at")
    for workspace_id, successor_id, origin_id, at in rotations:
        rows = ApiKey.objects.in_workspace(workspace_id).filter(revoked_at=None, pk__lt=successor_id)
        family = rows.filter(pk=origin_id) | rows.filter(origin=origin_id)
        for key_id, digest, ends_at in family.values_list("pk", "digest", "expires_at"):
            yield build_ending(
                KEY_SHORTENED, workspace_id, key_id, at, digest=digest, ends_at=format_timestamp(ends_at)
            )


def iterate_withdrawn_invitations(since: datetime) -> Iterator[Ending]:
    rows: Any = Invitation.unscoped.filter(withdrawn_at__gte=since)
    for workspace_id, invitation_id, at in rows.values_list("workspace_id", "pk", "withdrawn_at"):
        yield build_ending(INVITATION_WITHDRAWN, workspace_id, invitation_id, at)


def iterate_audited_endings(since: datetime) -> Iterator[Ending]:
    """Yield removed members, changed roles, withdrawn folders, and deleted and restored workspaces.

    All changes of roles are in the journal: the last one of a member counts. So does the last one of a
    workspace that was deleted and restored.
    """
    workspace_ids = list(list_workspaces_in_scope().order_by("pk").values_list("pk", flat=True))
    for start in range(0, len(workspace_ids), CHUNK_SIZE):
        rows = AuditEvent.unscoped.filter(
            workspace__in=workspace_ids[start : start + CHUNK_SIZE],
            at__gte=since,
            kind__in={kind for kind, _ in AUDITED_ENDINGS},
            verb__in={verb for _, verb in AUDITED_ENDINGS},
        )
        # Read the JSON as text: if it is damaged in one row, the other rows must still be read.
        rows = rows.annotate(text=Cast(F("after"), TextField()))
        names = ("workspace_id", "kind", "verb", "object_id", "at", "text")
        for workspace_id, object_kind, verb, object_id, at, text in rows.values_list(*names):
            kind = AUDITED_ENDINGS.get((object_kind, verb))
            if kind == ROLE_CHANGED:
                yield build_ending(kind, workspace_id, object_id, at, role=read_role(text))
            elif kind:
                yield build_ending(kind, workspace_id, object_id, at)


def read_role(text: str | None) -> str:
    """Return the role of an audit event; the lowest one if the event is damaged."""
    try:
        role = json.loads(text or "")["role"]
    except (ValueError, TypeError, LookupError):
        role = ""
    return role if role in Role.values else Role.VIEWER.value


def iterate_erasures(since: datetime) -> Iterator[Ending]:
    # Removals of workspaces are left out: a deleted workspace is listed by its audit event.
    for erasure in Erasure.unscoped.filter(at__gte=since).exclude(kind=REMOVAL_KIND).order_by("at", "pk"):
        yield build_ending(
            ERASED,
            erasure.workspace_id,
            erasure.object_id,
            erasure.at,
            record=erasure.kind,
            reason=erasure.reason,
            person=erasure.person_id,
            author_label=erasure.author_label,
        )


def iterate_account_endings(since: datetime) -> Iterator[Ending]:
    """Yield changes of passwords, second factors and email addresses, and changes by operators.

    Each has the factors and addresses that were left: what a restored account has besides them, has ended.
    """
    events = SecurityEvent.objects.filter(at__gte=since, kind__in=ACCOUNT_EVENTS, user__isnull=False)
    users = User.objects.filter(Exists(events.filter(user=OuterRef("pk"))))
    access = {pk: flags for pk, *flags in users.values_list("pk", "is_active", "is_superuser")}
    factors = group_ids(Authenticator.objects.filter(user__in=users).values_list("user_id", "pk"))
    addresses = group_ids(EmailAddress.objects.filter(user__in=users).values_list("user_id", "pk"))
    for event_id, user_id, kind, at in events.values_list("pk", "user_id", "kind", "at"):
        is_active, is_superuser = access.get(user_id, (False, False))
        yield build_ending(
            ACCOUNT_CHANGED,
            None,
            event_id,
            at,
            user=user_id,
            event=kind,
            is_active=is_active,
            is_superuser=is_superuser,
            factors=factors.get(user_id, []),
            addresses=addresses.get(user_id, []),
        )


def group_ids(pairs: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
    groups: dict[int, list[int]] = {}
    for user_id, row_id in sorted(pairs):
        groups.setdefault(user_id, []).append(row_id)
    return groups


def build_ending(kind: str, workspace_id: int | None, row_id: int, at: datetime, **details: Any) -> Ending:
    return {"kind": kind, "workspace": workspace_id, "id": row_id, "at": format_timestamp(at), **details}


ENDING_SOURCES: tuple[Callable[[datetime], Iterator[Ending]], ...] = (
    iterate_ended_keys,
    iterate_withdrawn_invitations,
    iterate_audited_endings,
    iterate_erasures,
    iterate_account_endings,
)
