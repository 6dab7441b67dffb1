"""Store the result of a discovery: new files and revisions, statuses, and the active revisions."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet
from django.utils import timezone

from personas.contents.services import lock_contents
from personas.models import Content, Workspace, sha256_digest
from skills.discovery import DiscoveredFile, DiscoveryResult
from skills.files.evaluate import FileEvaluation, evaluate_file
from skills.files.models import Verdict
from skills.files.policy import policy_for
from skills.files.status_changes import apply_statuses, notify_readers
from skills.models import ContextFile, FileRevision, RefreshRun, Source


class ContentBatch:
    """Collect file contents by digest and insert those that the workspace has not stored yet.

    After `save`, `by_digest` maps each digest to its stored row.
    """

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.by_digest: dict[str, Content] = {}

    def add(self, data: bytes) -> Content:
        digest = sha256_digest(data)
        if digest not in self.by_digest:
            self.by_digest[digest] = Content(
                workspace=self.workspace, digest=digest, size=len(data), data=data
            )
        return self.by_digest[digest]

    def save(self) -> None:
        """Insert the contents whose digest the workspace does not have yet, and load the stored rows."""
        lock_contents(self.workspace.pk, is_shared=True)
        rows = Content.objects.in_workspace(self.workspace)
        matching = rows.filter(digest__in=list(self.by_digest))
        stored = get_contents_by_digest(matching)
        new = [row for digest, row in self.by_digest.items() if digest not in stored]
        rows.bulk_create(new, ignore_conflicts=True)
        # bulk_create with ignore_conflicts does not set primary keys, so load all rows again.
        self.by_digest |= get_contents_by_digest(matching.all())


def get_contents_by_digest(rows: QuerySet[Content]) -> dict[str, Content]:
    return {row.digest: row for row in rows.defer("data")}


MAX_PATH_LENGTH = 1_000


@dataclass
class FileChange:
    """A file with the changes that this refresh found, before they are written to the database.

    `revision` is a new revision. `updated_revision` is an existing revision whose `last_seen_at` changes.
    """

    file: ContextFile
    is_new: bool = False
    revision: FileRevision | None = None
    updated_revision: FileRevision | None = None
    is_changed: bool = False


@dataclass
class SourceSnapshot:
    """The stored files of a source by path, with the new contents and the evaluations of this refresh."""

    source: Source
    now: datetime
    files: dict[str, ContextFile]
    contents: ContentBatch
    evaluations: Mapping[str, FileEvaluation]


def evaluate_discovered_files(
    source: Source, discovered: DiscoveryResult, report_progress: Callable[[int, int, int], object]
) -> dict[str, FileEvaluation]:
    """Evaluate each file whose content was read, and return the evaluations by path.

    This can take long, so call it before the transaction that stores the result.
    """
    evaluations = {}
    for entry in (*discovered.files, *discovered.skills):
        if entry.content is not None:
            evaluations[entry.path] = evaluate_file(entry.kind, entry.path, entry.content, source.harnesses)
            report_progress(discovered.seen_count, discovered.read_count, len(discovered.refusals))
    return evaluations


def store_discovered_files(
    source: Source,
    discovered: DiscoveryResult,
    evaluations: Mapping[str, FileEvaluation],
    *,
    by_run: RefreshRun,
) -> dict[str, int]:
    """Write the files that changed. Return the number of files by the status that they entered."""
    now = timezone.now()
    snapshot = SourceSnapshot(
        source, now, get_files_by_path(source), ContentBatch(source.workspace), evaluations
    )
    changes = [
        *detect_changes(snapshot, discovered),
        *detect_unreadable_files(snapshot, discovered),
        *detect_missing_files(snapshot, discovered),
    ]
    changed = [change for change in changes if change.is_changed]
    write_file_changes(snapshot, changed)
    policy = policy_for(source)
    statuses_before = {change.file.pk: change.file.status for change in changed if not change.is_new}
    changed_files = apply_statuses([change.file for change in changed], policy, now=now)
    notify_readers(source, changed_files, cause=by_run)
    statuses = Counter(
        change.file.status
        for change in changed
        if statuses_before.get(change.file.pk) != change.file.status or change.revision
    )
    return dict(statuses)


def get_files_by_path(source: Source) -> dict[str, ContextFile]:
    rows = ContextFile.objects.in_workspace(source.workspace_id).filter(source=source)
    return {row.path: row for row in rows.select_related("latest", "approved", "active")}


def detect_changes(snapshot: SourceSnapshot, discovered: DiscoveryResult) -> Iterator[FileChange]:
    for entry in (*discovered.files, *discovered.skills):
        if len(entry.path) <= MAX_PATH_LENGTH:
            yield detect_change(snapshot, entry)


def detect_change(snapshot: SourceSnapshot, entry: DiscoveredFile) -> FileChange:
    """Compare one discovered file with its stored row, and update the row in memory."""
    file = snapshot.files.get(entry.path)
    change = FileChange(file or build_file(snapshot, entry), is_new=file is None)
    file = change.file
    was_unavailable = not file.exists or bool(file.problem)
    file.exists, file.problem = True, ""
    if entry.kind != file.file_kind:
        file.file_kind, change.is_changed = entry.kind, True
    known_stamp = (file.size, file.mtime_ns, file.ctime_ns, file.inode)
    if entry.content is not None and (stamp := entry.stamp[:4]) != known_stamp:
        file.size, file.mtime_ns, file.ctime_ns, file.inode = stamp
        change.is_changed = True
    if entry.content is not None and (file.latest is None or file.latest.digest != entry.stamp.digest):
        add_revision(snapshot, change, entry.content)
    elif was_unavailable and file.latest is not None:
        file.latest.last_seen_at = None
        change.updated_revision = file.latest
    change.is_changed |= change.is_new or was_unavailable
    if change.is_changed and (was_unavailable or change.revision):
        file.is_resolved = False
    return change


def build_file(snapshot: SourceSnapshot, entry: DiscoveredFile) -> ContextFile:
    return ContextFile(
        workspace=snapshot.source.workspace,
        source=snapshot.source,
        path=entry.path,
        file_kind=entry.kind,
        first_seen_at=snapshot.now,
        changed_at=snapshot.now,
    )


def add_revision(snapshot: SourceSnapshot, change: FileChange, data: bytes) -> None:
    """Add a revision with the new content and its evaluation, and set when the previous one was last seen."""
    file, source = change.file, snapshot.source
    evaluation = snapshot.evaluations[file.path]
    content = snapshot.contents.add(data)
    if file.latest is not None:
        file.latest.last_seen_at = snapshot.now
        change.updated_revision = file.latest
    change.revision = FileRevision(
        workspace=source.workspace,
        file=file,
        number=file.latest.number + 1 if file.latest else 1,
        digest=content.digest,
        content=content,
        size=len(data),
        verdict=Verdict(evaluation.verdict),
        findings=evaluation.findings,
        problems=evaluation.problems,
        head=evaluation.head,
        first_seen_at=snapshot.now,
    )
    file.name = str(evaluation.head.get("name", ""))[:200]
    file.changed_at, change.is_changed = snapshot.now, True


def detect_unreadable_files(snapshot: SourceSnapshot, discovered: DiscoveryResult) -> Iterator[FileChange]:
    """Yield known files that this refresh could not read. Their active revision stays in use."""
    for refusal in (*discovered.refusals, *discovered.skipped):
        file = snapshot.files.get(refusal.path)
        if file is not None and (file.problem != refusal.reason[:500] or not file.exists):
            file.problem, file.exists, file.is_resolved = refusal.reason[:500], True, False
            file.changed_at = snapshot.now
            yield FileChange(file, is_changed=True)


def detect_missing_files(snapshot: SourceSnapshot, discovered: DiscoveryResult) -> Iterator[FileChange]:
    present = [path for path, file in snapshot.files.items() if file.exists]
    for path in discovered.list_missing_paths(present):
        file = snapshot.files[path]
        file.exists, file.problem, file.is_resolved, file.changed_at = False, "", False, snapshot.now
        change = FileChange(file, is_changed=True)
        if file.latest is not None:
            file.latest.last_seen_at = snapshot.now
            change.updated_revision = file.latest
        yield change


def write_file_changes(snapshot: SourceSnapshot, changes: list[FileChange]) -> None:
    """Write new contents, new files and revisions, in foreign key order.

    The changed columns of the files are saved later by `apply_statuses`.
    """
    workspace = snapshot.source.workspace
    snapshot.contents.save()
    files, revisions = (
        ContextFile.objects.in_workspace(workspace),
        FileRevision.objects.in_workspace(workspace),
    )
    files.bulk_create([change.file for change in changes if change.is_new])
    new_revisions = [change.revision for change in changes if change.revision]
    for revision in new_revisions:
        revision.file, revision.content = revision.file, snapshot.contents.by_digest[revision.digest]
    revisions.bulk_create(new_revisions)
    revisions.bulk_update(
        [change.updated_revision for change in changes if change.updated_revision],
        ["last_seen_at"],
        batch_size=500,
    )
    for change in changes:
        if change.revision:
            change.file.latest = change.revision
