"""One look at a source: discover, judge what was read, and store it, all or nothing."""

import time
from collections.abc import Callable

from django.db import transaction
from django.utils import timezone

from skills.confined import Stamp
from skills.discovery import Found, Refusal, discover_tree
from skills.harnesses import Harness
from skills.models import ContextFile, PushedFile, RefreshRun, RunStatus, Source, SourceKind, is_allowed
from skills.selectors.harnesses import harnesses_of
from skills.services.runs import note_progress
from skills.services.storing import store_found

PROGRESS_SECONDS = 0.4
WITHDRAWN = Refusal(".", "grant", "Operators no longer allow this folder. Nothing was read.")
Notice = Callable[[int, int, int], None]


class LostRun(Exception):
    """Somebody else took the run over meanwhile; what was found is thrown away."""


def refresh_source(run: RefreshRun) -> RefreshRun:
    """Carry out a claimed run; what is found becomes visible in one moment or not at all."""
    source = run.source
    rules = harnesses_of(source.workspace, source.harnesses)
    found = look(source, rules, progress_of(run))
    with transaction.atomic():
        source = hold(source)
        run = still_ours(run)
        run.outcome = store_found(source, found, by_run=run)
        finish(run, found)
    return run


def look(source: Source, rules: list[Harness], notice: Notice) -> Found:
    """What lies there now; unchanged files are not opened."""
    if source.source_kind == SourceKind.PUSHED:
        return pushed(source, rules)
    grant = source.grant
    if grant is None or not is_allowed(grant.path):
        return Found((), (), (WITHDRAWN,), 0, 0, is_complete=False)
    known = known_stamps(source)
    return discover_tree(grant.path, rules, folder=source.folder, known=known, notice=notice)


def known_stamps(source: Source) -> dict[str, Stamp]:
    rows = ContextFile.objects.in_workspace(source.workspace_id).filter(
        source=source, is_there=True, problem=""
    )
    columns = rows.values_list("path", "size", "mtime_ns", "inode", "newest__digest")
    return {path: Stamp(size, mtime, inode, digest or "") for path, size, mtime, inode, digest in columns}


def pushed(source: Source, rules: list[Harness]) -> Found:
    from skills.bundles import discover_pushed

    rows = PushedFile.objects.in_workspace(source.workspace_id).filter(source=source)
    files = {row.path: bytes(row.content.data or b"") for row in rows.select_related("content")}
    return discover_pushed(files, rules)


def progress_of(run: RefreshRun) -> Notice:
    """Told after each file, it writes only now and then."""
    last = time.monotonic()

    def notice(seen: int, read: int, refused: int) -> None:
        nonlocal last
        if time.monotonic() - last > PROGRESS_SECONDS:
            last = time.monotonic()
            note_progress(run, seen, read, refused)

    return notice


def hold(source: Source) -> Source:
    """Lock the source: verbs of people and runs of workers take turns."""
    rows = Source.objects.in_workspace(source.workspace_id).select_related("workspace")
    return rows.select_for_update(of=("self",)).get(pk=source.pk)


def still_ours(run: RefreshRun) -> RefreshRun:
    rows = RefreshRun.objects.in_workspace(run.workspace_id).select_for_update(of=("self",))
    held = rows.filter(pk=run.pk, status=RunStatus.RUNNING, started_at=run.started_at).first()
    if held is None:
        raise LostRun
    return held


def finish(run: RefreshRun, found: Found) -> None:
    run.seen, run.read, run.refused = found.seen, found.read, len(found.refusals)
    run.refusals = [refusal._asdict() for refusal in found.refusals]
    run.status, run.finished_at = RunStatus.DONE, timezone.now()
    if not found.is_complete:
        whole = next((refusal for refusal in found.refusals if refusal.path == "."), None)
        run.status, run.error = RunStatus.FAILED, whole.reason[:500] if whole else "The look ended early."
    run.save()
