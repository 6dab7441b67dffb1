"""Turns what a look found into rows: new revisions, states, and which revision is in force."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet
from django.utils import timezone

from personas.models import Content, Workspace, sha256_digest
from skills.discovery import DiscoveredFile, DiscoveryResult
from skills.files.evaluate import FileEvaluation, evaluate_file
from skills.files.models import Verdict
from skills.files.policy import policy_for
from skills.files.state_changes import apply_states, notify_readers
from skills.models import ContextFile, FileRevision, RefreshRun, Source


class ContentBatch:
    """Bytes that are to be kept, by digest; after `keep` each of them has its row."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.by_digest: dict[str, Content] = {}

    def take(self, data: bytes) -> Content:
        digest = sha256_digest(data)
        if digest not in self.by_digest:
            self.by_digest[digest] = Content(
                workspace=self.workspace, digest=digest, size=len(data), data=data
            )
        return self.by_digest[digest]

    def keep(self) -> None:
        """Write what no file, push or source of the workspace has brought before."""
        rows = Content.objects.in_workspace(self.workspace)
        asked = rows.filter(digest__in=list(self.by_digest))
        have = get_contents_by_digest(asked)
        new = [row for digest, row in self.by_digest.items() if digest not in have]
        rows.bulk_create(new, ignore_conflicts=True)
        # Those made without a conflict check have no id yet on every database: look them all up.
        self.by_digest |= get_contents_by_digest(asked.all())


def get_contents_by_digest(rows: QuerySet[Content]) -> dict[str, Content]:
    return {row.digest: row for row in rows.defer("data")}


MAX_PATH_LENGTH = 1_000


@dataclass
class FileChange:
    """A file with what this look says of it, before anything is written."""

    file: ContextFile
    is_new: bool = False
    revision: FileRevision | None = None
    left: FileRevision | None = None
    is_touched: bool = False


@dataclass
class SourceSnapshot:
    """The files of a source in memory, by path."""

    source: Source
    now: datetime
    files: dict[str, ContextFile]
    contents: ContentBatch
    verdicts: Mapping[str, FileEvaluation]


def evaluate_discovered_files(
    source: Source, found: DiscoveryResult, notice: Callable[[int, int, int], object]
) -> dict[str, FileEvaluation]:
    """What to make of each file that was read; before the transaction, since it takes time and no rows."""
    verdicts = {}
    for entry in (*found.files, *found.skills):
        if entry.content is not None:
            verdicts[entry.path] = evaluate_file(entry.kind, entry.path, entry.content, source.harnesses)
            notice(found.seen_count, found.read_count, len(found.refusals))
    return verdicts


def store_discovered_files(
    source: Source, found: DiscoveryResult, verdicts: Mapping[str, FileEvaluation], *, by_run: RefreshRun
) -> dict[str, int]:
    """Write what changed and nothing else; gives back how many files came into which state."""
    now = timezone.now()
    stored = SourceSnapshot(source, now, get_files_by_path(source), ContentBatch(source.workspace), verdicts)
    changes = [
        *detect_changes(stored, found),
        *detect_unreadable_files(stored, found),
        *detect_missing_files(stored, found),
    ]
    touched = [change for change in changes if change.is_touched]
    write_file_changes(stored, touched)
    house = policy_for(source)
    before = {change.file.pk: change.file.state for change in touched if not change.is_new}
    moved = apply_states([change.file for change in touched], house, now=now)
    notify_readers(source, moved, cause=by_run)
    states = Counter(
        change.file.state
        for change in touched
        if before.get(change.file.pk) != change.file.state or change.revision
    )
    return dict(states)


def get_files_by_path(source: Source) -> dict[str, ContextFile]:
    rows = ContextFile.objects.in_workspace(source.workspace_id).filter(source=source)
    return {row.path: row for row in rows.select_related("newest", "agreed", "in_force")}


def detect_changes(stored: SourceSnapshot, found: DiscoveryResult) -> Iterator[FileChange]:
    for entry in (*found.files, *found.skills):
        if len(entry.path) <= MAX_PATH_LENGTH:
            yield detect_change(stored, entry)


def detect_change(stored: SourceSnapshot, entry: DiscoveredFile) -> FileChange:
    """Compare one found file with what is stored of it."""
    file = stored.files.get(entry.path)
    change = FileChange(file or build_file(stored, entry), is_new=file is None)
    file = change.file
    was_away = not file.is_there or bool(file.problem)
    file.is_there, file.problem = True, ""
    if entry.kind != file.file_kind:
        file.file_kind, change.is_touched = entry.kind, True
    if entry.content is not None and (stamp := entry.stamp[:3]) != (file.size, file.mtime_ns, file.inode):
        file.size, file.mtime_ns, file.inode = stamp
        change.is_touched = True
    if entry.content is not None and (file.newest is None or file.newest.digest != entry.stamp.digest):
        add_revision(stored, change, entry.content)
    elif was_away and file.newest is not None:
        file.newest.last_seen_at = None
        change.left = file.newest
    change.is_touched |= change.is_new or was_away
    if change.is_touched and (was_away or change.revision):
        file.is_settled = False
    return change


def build_file(stored: SourceSnapshot, entry: DiscoveredFile) -> ContextFile:
    return ContextFile(
        workspace=stored.source.workspace,
        source=stored.source,
        path=entry.path,
        file_kind=entry.kind,
        first_seen_at=stored.now,
        changed_at=stored.now,
    )


def add_revision(stored: SourceSnapshot, change: FileChange, data: bytes) -> None:
    """The file says something else than before: keep that, with what is to be made of it."""
    file, source = change.file, stored.source
    verdict = stored.verdicts[file.path]
    content = stored.contents.take(data)
    if file.newest is not None:
        file.newest.last_seen_at = stored.now
        change.left = file.newest
    change.revision = FileRevision(
        workspace=source.workspace,
        file=file,
        number=file.newest.number + 1 if file.newest else 1,
        digest=content.digest,
        content=content,
        size=len(data),
        verdict=Verdict(verdict.verdict),
        findings=verdict.findings,
        problems=verdict.problems,
        head=verdict.head,
        first_seen_at=stored.now,
    )
    file.name = str(verdict.head.get("name", ""))[:200]
    file.changed_at, change.is_touched = stored.now, True


def detect_unreadable_files(stored: SourceSnapshot, found: DiscoveryResult) -> Iterator[FileChange]:
    """A known file that could not be read this time; its last good revision stays."""
    for refusal in found.refusals:
        file = stored.files.get(refusal.path)
        if file is not None and (file.problem != refusal.reason[:500] or not file.is_there):
            file.problem, file.is_there, file.is_settled = refusal.reason[:500], True, False
            file.changed_at = stored.now
            yield FileChange(file, is_touched=True)


def detect_missing_files(stored: SourceSnapshot, found: DiscoveryResult) -> Iterator[FileChange]:
    present = [path for path, file in stored.files.items() if file.is_there]
    for path in found.list_missing_paths(present):
        file = stored.files[path]
        file.is_there, file.problem, file.is_settled, file.changed_at = False, "", False, stored.now
        change = FileChange(file, is_touched=True)
        if file.newest is not None:
            file.newest.last_seen_at = stored.now
            change.left = file.newest
        yield change


def write_file_changes(stored: SourceSnapshot, changes: list[FileChange]) -> None:
    """Rows in the order they lean on each other; `settle` writes the files' own columns."""
    workspace = stored.source.workspace
    stored.contents.keep()
    files, revisions = (
        ContextFile.objects.in_workspace(workspace),
        FileRevision.objects.in_workspace(workspace),
    )
    files.bulk_create([change.file for change in changes if change.is_new])
    made = [change.revision for change in changes if change.revision]
    for revision in made:
        revision.file, revision.content = revision.file, stored.contents.by_digest[revision.digest]
    revisions.bulk_create(made)
    revisions.bulk_update(
        [change.left for change in changes if change.left], ["last_seen_at"], batch_size=500
    )
    for change in changes:
        if change.revision:
            change.file.newest = change.revision
