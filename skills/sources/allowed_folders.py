"""Folders that a workspace may read: add, edit the note, withdraw.

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
from skills.models import AllowedFolder, Source


@transaction.atomic
def allow_folder(workspace: Workspace, path: str, *, note: str = "", by: Actor) -> AllowedFolder:
    """Allow a workspace to create sources from a folder and the folders below it."""
    folder = AllowedFolder(workspace=workspace, path=strip_trailing_slash(path), note=note)
    with convert_save_errors():
        folder.full_clean()
        folder.save()
    log_folder_event(folder, "granted", None, allowed_folder_json(folder), by=by)
    return folder


@transaction.atomic
def update_folder_note(folder: AllowedFolder, note: str, *, by: Actor) -> AllowedFolder:
    """Change the note of an allowed folder. Its path is fixed: sources refer to paths below it."""
    folder = AllowedFolder.objects.in_workspace(folder.workspace_id).select_for_update().get(pk=folder.pk)
    before, folder.note = allowed_folder_json(folder), note
    with convert_save_errors():
        folder.full_clean()
        folder.save(update_fields=["note"])
    if allowed_folder_json(folder) != before:
        log_folder_event(folder, "edited", before, allowed_folder_json(folder), by=by)
    return folder


@transaction.atomic
def withdraw_folder(folder: AllowedFolder, *, by: Actor) -> None:
    """Delete an allowed folder that no source uses, not even an archived one."""
    folder = AllowedFolder.objects.in_workspace(folder.workspace_id).select_for_update().get(pk=folder.pk)
    sources = Source.objects.in_workspace(folder.workspace_id).filter(allowed_folder=folder).order_by("name")
    names = [
        _("%(source)s (archived)") % {"source": source} if source.is_archived else str(source)
        for source in sources
    ]
    if names:
        message = _(
            "%(folder)s is still used by %(names)s. To block access immediately, "
            "remove its root from DRAMATIS_SOURCE_ROOTS."
        )
        raise RecordInUse(message % {"folder": folder, "names": format_short_list(names)})
    log_folder_event(folder, "withdrawn", allowed_folder_json(folder), None, by=by)
    folder.delete()


def strip_trailing_slash(path: str) -> str:
    """Remove trailing slashes, so that the same folder cannot be granted twice. Keep "/" itself."""
    return path.strip().rstrip("/") or path.strip()


def allowed_folder_json(folder: AllowedFolder) -> dict[str, object]:
    return {"path": folder.path, "note": folder.note}


def log_folder_event(
    folder: AllowedFolder,
    action: str,
    before: dict[str, object] | None,
    after: dict[str, object] | None,
    *,
    by: Actor,
) -> None:
    write_audit_event(
        folder.workspace_id,
        action,
        "allowed_folder",
        folder.pk,
        str(folder),
        by=by,
        before=before,
        after=after,
    )
