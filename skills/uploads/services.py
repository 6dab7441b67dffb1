"""Store files pushed by upload or API, and request a refresh that searches them like files in a folder."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from core.text.sizes import format_size
from personas.actors import Actor
from personas.audit.services import write_audit_event
from personas.errors import DomainError, InvalidInput
from personas.limits.storage_quota import charge_pushed_bytes
from personas.models import ApiKey, Content, sha256_digest
from skills.archives import FileBundle, bundle_files
from skills.archives.paths import casefold_path, find_path_conflicts
from skills.discovery import Refusal
from skills.discovery.harnesses import DiscoveryCaps
from skills.discovery.search import ROOT_PATH
from skills.files.discovered_changes import ContentBatch
from skills.models import PushedFile, RefreshRun, Source, SourceKind
from skills.refresh.holds import add_confirmed_paths
from skills.refresh.runs import SourceArchived, request_refresh
from skills.sources.locks import lock_source

DEFAULT_CAPS = DiscoveryCaps()
# The audit event of a larger push lists no paths, and the push then counts for all files of the source.
MAX_AUDITED_PATHS = 100
# Approximate storage for a push and for each of its files, in addition to the texts.
PUSH_ROW_BYTES, ROW_BYTES = 1_000, 200
PATH_TAKEN_MESSAGE = "The source already contains a file or folder whose name is the same on many disks."


class SourceNotPushable(DomainError):
    """Files cannot be pushed to a folder source."""

    code = "not_a_push_source"


class PushedFileNotFound(DomainError):
    """The source has no such pushed file."""

    code = "not_found"


class PushedByOther(DomainError):
    """The file was pushed with another API key, so this key may not remove it."""

    code = "out_of_scope"


@dataclass(frozen=True)
class Pusher:
    """The API key that pushes files. Without `can_remove_all`, it may remove only files that it pushed."""

    key: ApiKey
    can_remove_all: bool

    def can_remove(self, file: PushedFile) -> bool:
        return self.can_remove_all or file.pushed_by_id == self.key.origin_key_id


class InvalidBundle(DomainError):
    """The push was rejected as a whole and nothing was stored. `refusals` holds the reasons."""

    code = "invalid_bundle"

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        root_reason = next((refusal.reason for refusal in refusals if refusal.path == ROOT_PATH), "")
        self.refusals = tuple(refusals)
        super().__init__(
            root_reason or _("None of these files can be accepted. Check the reason for each file.")
        )


@transaction.atomic
def push_bundle(
    source: Source, bundle: FileBundle, *, replace: bool, by: Actor, pusher: Pusher | None = None
) -> RefreshRun:
    """Store the pushed files and request a refresh.

    With `replace`, stored files that are not part of the push are deleted, except those that `pusher` may not
    remove. If a pushed file is refused, its earlier content stays, as for a file on disk that cannot be read.
    """
    source = lock_pushed_source(source)
    stored = get_pushed_files_by_path(source)
    bundle_paths = {path for path, _ in bundle.files} | {refusal.path for refusal in bundle.refusals}
    kept_files = {
        path: row
        for path, row in stored.items()
        if path in bundle_paths or not replace or (pusher and not pusher.can_remove(row))
    }
    bundle = exclude_path_conflicts(bundle, kept_files)
    check_bundle(bundle)
    check_source_capacity(bundle, kept_files)
    charge_pushed_bytes(source.workspace_id, measure_new_bytes(source, bundle))
    removed = set(stored) - set(kept_files)
    after: dict[str, Any] = save_pushed_files(source, bundle, stored, pusher)
    after |= {"removed": delete_pushed_files(source, removed), "refused": len(bundle.refusals)}
    # List the paths, because users may not approve what they pushed. This includes files whose pushed text is
    # the same as before.
    paths = sorted({*removed, *[path for path, _ in bundle.files]})
    if len(paths) <= MAX_AUDITED_PATHS:
        after["paths"] = paths
    write_audit_event(source.workspace_id, "pushed", source.kind, source.pk, str(source), by=by, after=after)
    return request_push_refresh(source, bundle, by=by)


def push_file(
    source: Source, path: str, data: bytes, *, by: Actor, pusher: Pusher | None = None
) -> RefreshRun:
    """Store one file and request a refresh. A stored file with the same path is replaced."""
    try:
        return push_bundle(source, bundle_files([(path, data)]), replace=False, by=by, pusher=pusher)
    except InvalidBundle as error:
        raise InvalidInput.on("path", error.refusals[0].reason) from error


@transaction.atomic
def remove_pushed_file(source: Source, path: str, *, by: Actor, pusher: Pusher | None = None) -> RefreshRun:
    """Delete one pushed file and request a refresh. The stored revisions of the file are kept."""
    source = lock_pushed_source(source)
    row = get_pushed_files_by_path(source).get(path)
    if row and pusher and not pusher.can_remove(row):
        raise PushedByOther(
            _(
                "%(path)s was pushed with another key. To remove it, use an admin key "
                "with the “manage” permission."
            )
            % {"path": path[:200]}
        )
    if not delete_pushed_files(source, {path}):
        raise PushedFileNotFound(_("Pushed file %(path)s not found.") % {"path": path[:200]})
    before = {"path": path}
    write_audit_event(
        source.workspace_id, "removed file", source.kind, source.pk, str(source), by=by, before=before
    )
    run = request_push_refresh(source, FileBundle((), ()), by=by)
    add_confirmed_paths(run, [path])
    return run


def lock_pushed_source(source: Source) -> Source:
    source = lock_source(source)
    if source.source_kind != SourceKind.PUSHED:
        raise SourceNotPushable(_("This source reads its files from a folder. Change them there."))
    if source.is_archived:
        raise SourceArchived(_("This source is archived. Restore it to push files."))
    return source


def get_pushed_files_by_path(source: Source) -> dict[str, PushedFile]:
    rows = PushedFile.objects.in_workspace(source.workspace_id).filter(source=source)
    return {row.path: row for row in rows.select_related("content").defer("content__data")}


def exclude_path_conflicts(bundle: FileBundle, kept_paths: Iterable[str]) -> FileBundle:
    """Move pushed files whose paths conflict with other files of the source to the refusals.

    Paths conflict if a file system could take them for the same, for example if they differ only in case.
    """
    conflicts = find_path_conflicts(
        (path, False) for path in {*kept_paths, *[path for path, _ in bundle.files]}
    )
    conflict_keys = {casefold_path(path) for path in conflicts}
    refused = {
        path
        for path, _ in bundle.files
        if not conflict_keys.isdisjoint(list_path_prefixes(casefold_path(path)))
    }
    files = tuple([(path, data) for path, data in bundle.files if path not in refused])
    return FileBundle(
        files, (*bundle.refusals, *[Refusal(path, "alike", PATH_TAKEN_MESSAGE) for path in sorted(refused)])
    )


def list_path_prefixes(path: str) -> list[str]:
    """List the path and all its parent folders."""
    return ["/".join(path.split("/")[:count]) for count in range(1, path.count("/") + 2)]


def check_bundle(bundle: FileBundle) -> None:
    if not bundle.files and not bundle.refusals:
        raise InvalidBundle([Refusal(ROOT_PATH, "empty", _("The push contains no files. Add at least one."))])
    if not bundle.files or any(refusal.path == ROOT_PATH for refusal in bundle.refusals):
        raise InvalidBundle(bundle.refusals)


def check_source_capacity(bundle: FileBundle, kept_files: Mapping[str, PushedFile]) -> None:
    """Raise InvalidBundle if the source would exceed the limits of one refresh: file count and total size."""
    sizes = {path: row.content.size for path, row in kept_files.items()}
    sizes |= {path: len(data) for path, data in bundle.files}
    if len(sizes) > DEFAULT_CAPS.files:
        message = _(
            "A source can have at most %(most)s pushed files. This push would bring "
            "it to %(count)s. Push fewer files."
        )
        counts = {"most": f"{DEFAULT_CAPS.files:,}", "count": f"{len(sizes):,}"}
        raise InvalidBundle([Refusal(ROOT_PATH, "files", message % counts)])
    if sum(sizes.values()) > DEFAULT_CAPS.total_bytes:
        message = _("The files pushed to a source can total at most %(most)s. Push fewer or smaller files.")
        raise InvalidBundle(
            [Refusal(ROOT_PATH, "total", message % {"most": format_size(DEFAULT_CAPS.total_bytes)})]
        )


def measure_new_bytes(source: Source, bundle: FileBundle) -> int:
    """Return the bytes that a push adds to the database: texts that the workspace has are stored once.

    Each file costs a row, and each push an audit event and a run, so an unchanged push is not free either.
    """
    contents = {sha256_digest(data): data for _, data in bundle.files}
    rows = Content.objects.in_workspace(source.workspace_id).filter(digest__in=list(contents))
    known = set(rows.values_list("digest", flat=True))
    new = sum(len(data) for digest, data in contents.items() if digest not in known)
    return new + PUSH_ROW_BYTES + ROW_BYTES * len(bundle.files)


def save_pushed_files(
    source: Source, bundle: FileBundle, stored: Mapping[str, PushedFile], pusher: Pusher | None = None
) -> dict[str, int]:
    """Insert new files and update changed ones, and return how many. Unchanged files are not written.

    A file stays that of the key that pushed it first: another key cannot overwrite and then remove it.
    """
    key_id = pusher.key.origin_key_id if pusher else None
    contents = ContentBatch(source.workspace)
    digests = {path: contents.add(data).digest for path, data in bundle.files}
    contents.save()
    added = [path for path in digests if path not in stored]
    changed = [path for path in digests if path in stored and stored[path].content.digest != digests[path]]
    rows = PushedFile.objects.in_workspace(source.workspace_id)
    new = [
        PushedFile(workspace=source.workspace, source=source, path=path, pushed_by_id=key_id)
        for path in added
    ]
    for row in new:
        row.content = contents.by_digest[digests[row.path]]
    rows.bulk_create(new, batch_size=500)
    for path in changed:
        stored[path].content = contents.by_digest[digests[path]]
        stored[path].save()
    return {"added": len(added), "changed": len(changed)}


def delete_pushed_files(source: Source, paths: set[str]) -> int:
    rows = PushedFile.objects.in_workspace(source.workspace_id).filter(source=source, path__in=paths)
    return rows.delete()[0]


def request_push_refresh(source: Source, bundle: FileBundle, *, by: Actor) -> RefreshRun:
    """Request a refresh after a push, and store the refusals of the push on its run.

    If the run was already queued, it keeps the refusals of earlier pushes, except for files stored now.
    """
    run = request_refresh(source, cause="push", by=by)
    refusals = {refusal["path"]: refusal for refusal in run.refusals}
    refusals |= {refusal.path: refusal._asdict() for refusal in bundle.refusals}
    stored_paths = {path for path, _ in bundle.files}
    run.refusals = [refusal for path, refusal in refusals.items() if path not in stored_paths]
    run.refused = len(run.refusals)
    run.save(update_fields=["refusals", "refused"])
    return run
