"""What ended after a backup: a restore applies the journal, or ends what it cannot know about."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import structlog
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.utils import timezone

from project.backup.checkpoint_backup import CHECKPOINTS_FOLDER
from project.backup.errors import BackupError
from project.backup.manifest import Manifest
from project.journal import selectors
from project.journal.apply import apply_endings, revoke_all_keys, withdraw_all_invitations
from project.journal.files import (
    HEAD_FILE,
    JOURNAL_FILE,
    Ending,
    Journal,
    JournalError,
    open_journal,
    read_head,
    read_journal,
)
from project.journal.services import get_journal_folder
from prompts.evidence.integrity.checkpoint_signer import NoSigningKey

log = structlog.get_logger(__name__)

# A journal that ends longer ago than this may lack endings, unless the installation stopped at that time.
MAX_JOURNAL_AGE = timedelta(minutes=15)
WITHOUT_JOURNAL_ADVICE = (
    "Use another copy of the checkpoint folder, or pass --without-journal, which revokes all keys."
)
# Sentences about the endings that were applied, by kind.
APPLIED_SENTENCES = {
    selectors.KEY_REVOKED: "keys revoked after the backup: {}",
    selectors.KEY_SHORTENED: "rotated keys that expire earlier: {}",
    selectors.MEMBER_REMOVED: "members removed: {}",
    selectors.ROLE_CHANGED: "roles lowered: {}",
    selectors.INVITATION_WITHDRAWN: "invitations withdrawn: {}",
    selectors.FOLDER_WITHDRAWN: "allowed folders withdrawn: {}",
    selectors.ACCOUNT_CHANGED: "account changes (passwords, second factors, email addresses): {}",
    selectors.ERASED: "erasures repeated: {}",
    selectors.WORKSPACE_DELETED: "workspaces deleted: {}",
    selectors.WORKSPACE_RESTORED: "deleted workspaces restored: {}",
}


@dataclass(frozen=True)
class RestoreOptions:
    """What the operator knows better."""

    allow_unsigned: bool = False
    # Keep keys and invitations although the journal does not say which of them have ended.
    keep_keys: bool = False
    # Do not read the journal, for example because it was changed.
    without_journal: bool = False


@dataclass(frozen=True)
class EndingsSinceBackup:
    """The endings to apply, and why there may be others; `gap` is empty if there are none."""

    endings: list[Ending]
    gap: str = ""
    # Whether the journal in place is continued after the restore. Otherwise the backup's journal is.
    is_journal_kept: bool = True


def copy_journal(folder: Path) -> tuple[int, str]:
    """Copy the journal into a backup; return number and hash of its last line.

    A damaged journal is not copied: the backup is more important. A restore then applies all endings of the
    journal that it finds.
    """
    source, target = get_journal_folder(), folder / CHECKPOINTS_FOLDER
    try:
        with open_journal(source) as file:
            if file is None:
                return 0, ""
            head = read_head(source)
            with (target / JOURNAL_FILE).open("wb") as copy:
                copy.write(file.read(head.size))
            shutil.copyfile(source / HEAD_FILE, target / HEAD_FILE)
    except (JournalError, NoSigningKey) as error:
        log.error("journal_not_copied", error=str(error))  # noqa: TRY400
        return 0, ""
    return head.lines, head.hash


# --- before the restore --------------------------------------------------------------------------------


def find_endings(manifest: Manifest, options: RestoreOptions) -> EndingsSinceBackup:
    """Return the endings since the backup. Raise BackupError if the journal was changed."""
    if options.without_journal:
        return EndingsSinceBackup([], "The journal of endings is ignored.", is_journal_kept=False)
    folder = get_journal_folder()
    try:
        journal = read_journal(folder)
    except (JournalError, NoSigningKey, OSError) as error:
        raise BackupError(
            f"The journal of endings in {folder} is damaged: {error}. {WITHOUT_JOURNAL_ADVICE}"
        ) from error
    if journal is None:
        return EndingsSinceBackup([], f"No journal of endings in {folder}.")
    return select_endings(journal, manifest)


def select_endings(journal: Journal, manifest: Manifest) -> EndingsSinceBackup:
    lines, line_hash = manifest.journal
    through_at = journal.head.through_at
    if journal.head.lines < lines or through_at < datetime.fromisoformat(manifest.made_at):
        return EndingsSinceBackup(
            [],
            f"The journal of endings ends at {through_at:%Y-%m-%d %H:%M:%S} UTC, before the backup.",
            is_journal_kept=journal.has_position(lines, line_hash),
        )
    if not journal.has_position(lines, line_hash):
        raise BackupError(
            f"The journal of endings does not belong to this backup: its line {lines} is different. "
            f"{WITHOUT_JOURNAL_ADVICE}"
        )
    age = timezone.now() - through_at
    gap = (
        f"The journal of endings ends at {through_at:%Y-%m-%d %H:%M:%S} UTC, "
        f"{age.total_seconds() / 60:.0f} minutes ago."
        if age > MAX_JOURNAL_AGE
        else ""
    )
    return EndingsSinceBackup(list(journal.endings[lines:]), gap)


def describe_endings(found: EndingsSinceBackup, options: RestoreOptions) -> list[str]:
    """Say before a restore what it will do about endings."""
    sentences = [f"The journal lists {len(found.endings)} endings since the backup."]
    if found.gap and options.keep_keys:
        sentences.append(f"{found.gap} Keys and invitations are kept (--keep-keys).")
    elif found.gap:
        sentences.append(
            f"{found.gap} Later endings are unknown, so all keys are revoked and all open invitations "
            "withdrawn, unless you pass --keep-keys."
        )
    return sentences


# --- after the restore ---------------------------------------------------------------------------------


def end_again(found: EndingsSinceBackup, options: RestoreOptions, report: Callable[[str], None]) -> None:
    """Apply the endings to the restored database, and end what may have ended without being known."""
    Session.objects.all().delete()
    UserSession.objects.all().delete()
    report("All sessions were ended. Everyone must sign in again.")
    applied = apply_endings(found.endings)
    for kind, sentence in APPLIED_SENTENCES.items():
        if applied.counts[kind]:
            report(f"Applied from the journal: {sentence.format(f'{applied.counts[kind]:,}')}.")
    for note in applied.notes:
        report(f"Check this: {note}")
    if not found.gap:
        report("The journal of endings is complete.")
        return
    report(found.gap)
    if not options.keep_keys:
        report(
            f"{revoke_all_keys():,} keys were revoked and {withdraw_all_invitations():,} invitations "
            "withdrawn, because it is unknown which of them had ended. Create new ones."
        )
    report(
        "Check this: members, roles, passwords and second factors may be out of date, and erased "
        "text may be back. Compare them with your notes, and repeat erasures."
    )


def restore_journal(source: Path, moved_to: Path | None, found: EndingsSinceBackup) -> None:
    """Keep the journal that is in place, or restore the one of the backup, so that it is continued.

    A journal that is not kept is moved to the folder of the other files that were in place.
    """
    folder = get_journal_folder()
    if not found.is_journal_kept:
        aside = moved_to or folder / f"before-restore-{timezone.now():%Y%m%dT%H%M%S%f}"
        for name in (HEAD_FILE, JOURNAL_FILE):
            if (folder / name).exists():
                aside.mkdir(mode=0o700, exist_ok=True)
                (folder / name).rename(aside / name)
    if (folder / JOURNAL_FILE).exists() or (folder / HEAD_FILE).exists():
        return
    for name in (JOURNAL_FILE, HEAD_FILE):
        if (source / CHECKPOINTS_FOLDER / name).is_file():
            shutil.copyfile(source / CHECKPOINTS_FOLDER / name, folder / name)
            (folder / name).chmod(0o600)
