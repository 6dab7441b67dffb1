"""Grants of folders that a workspace may read: add, edit the note, withdraw.

For operators. Each change is written to the audit log.
"""

from django.db import transaction
from django.utils.translation import gettext as _

from core.text.lists import format_short_list
from personas.actors import Actor
from personas.audit.services import write_audit_event
from personas.errors import RecordInUse
from personas.models import Workspace
from personas.records.services import convert_save_errors
from skills.models import Source, SourceGrant


@transaction.atomic
def grant_folder(workspace: Workspace, path: str, *, note: str = "", by: Actor) -> SourceGrant:
    """Allow a workspace to create sources from a folder and the folders below it."""
    grant = SourceGrant(workspace=workspace, path=strip_trailing_slash(path), note=note)
    with convert_save_errors():
        grant.full_clean()
        grant.save()
    log_grant_event(grant, "granted", None, grant_json(grant), by=by)
    return grant


@transaction.atomic
def update_grant_note(grant: SourceGrant, note: str, *, by: Actor) -> SourceGrant:
    """Change the note of a grant. Its folder cannot be changed, because sources refer to paths below it."""
    grant = SourceGrant.objects.in_workspace(grant.workspace_id).select_for_update().get(pk=grant.pk)
    before, grant.note = grant_json(grant), note
    with convert_save_errors():
        grant.full_clean()
        grant.save(update_fields=["note"])
    if grant_json(grant) != before:
        log_grant_event(grant, "edited", before, grant_json(grant), by=by)
    return grant


@transaction.atomic
def withdraw_grant(grant: SourceGrant, *, by: Actor) -> None:
    """Delete a grant that no source uses, not even an archived one."""
    grant = SourceGrant.objects.in_workspace(grant.workspace_id).select_for_update().get(pk=grant.pk)
    sources = Source.objects.in_workspace(grant.workspace_id).filter(grant=grant).order_by("label")
    names = [
        _("%(source)s (archived)") % {"source": source} if source.is_archived else str(source)
        for source in sources
    ]
    if names:
        message = _(
            "%(grant)s is still used by %(names)s. To block access immediately, "
            "remove its root from DRAMATIS_SOURCE_ROOTS."
        )
        raise RecordInUse(message % {"grant": grant, "names": format_short_list(names)})
    log_grant_event(grant, "withdrawn", grant_json(grant), None, by=by)
    grant.delete()


def strip_trailing_slash(path: str) -> str:
    """Remove trailing slashes, so that the same folder cannot be granted twice. Keep "/" itself."""
    return path.strip().rstrip("/") or path.strip()


def grant_json(grant: SourceGrant) -> dict[str, object]:
    return {"path": grant.path, "note": grant.note}


def log_grant_event(
    grant: SourceGrant,
    action: str,
    before: dict[str, object] | None,
    after: dict[str, object] | None,
    *,
    by: Actor,
) -> None:
    write_audit_event(
        grant.workspace_id, action, "source_grant", grant.pk, str(grant), by=by, before=before, after=after
    )
