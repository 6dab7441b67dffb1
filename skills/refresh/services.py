"""One look at a source: discover, judge what was read, and store it, all or nothing."""

import time
from collections.abc import Callable, Mapping

from django.db import transaction
from django.utils import timezone

from skills.archives import PushedContent, discover_pushed_files
from skills.discovery import DiscoveryResult, Refusal, discover_tree
from skills.discovery.filesystem import FileStamp
from skills.discovery.harnesses import Harness
from skills.files.store import evaluate_discovered_files, store_discovered_files
from skills.models import (
    ContextFile,
    PushedFile,
    RefreshRun,
    RunStatus,
    Source,
    SourceKind,
    is_folder_allowed,
)
from skills.refresh.runs import LostRun, save_run_progress
from skills.rule_sets.effective import list_effective_harnesses
from skills.sources.locks import lock_source


def get_pushed_content(source: Source, known: Mapping[str, FileStamp]) -> dict[str, PushedContent]:
    """By path; a file that was looked at before as it is now gives its stamp, so nothing is read again."""
    rows = PushedFile.objects.in_workspace(source.workspace_id).filter(source=source)
    columns = rows.values_list("path", "content__size", "content__digest")
    stamps = {path: FileStamp(size, 0, 0, digest) for path, size, digest in columns}
    news = [path for path, stamp in stamps.items() if known.get(path) != stamp]
    contents = rows.filter(path__in=news).values_list("path", "content__data")
    return stamps | {path: bytes(data or b"") for path, data in contents}


PROGRESS_INTERVAL_SECONDS = 0.4
WITHDRAWN_REFUSAL = Refusal(".", "grant", "Operators no longer allow this folder. Nothing was read.")
ARCHIVED_REFUSAL = Refusal(".", "archived", "The source has been archived. Nothing was read.")
ProgressReporter = Callable[[int, int, int], None]


class SourceEdited(Exception):
    """What was found belongs to the source as it was before; it is thrown away."""


def refresh_source(run: RefreshRun) -> RefreshRun:
    """Carry out a claimed run; what is found becomes visible in one moment or not at all."""
    asked = run.source
    notice = build_progress_reporter(run)
    found = discover_source(asked, list_effective_harnesses(asked.workspace, asked.harnesses), notice)
    verdicts = evaluate_discovered_files(asked, found, notice)
    with transaction.atomic():
        source = lock_source(asked)
        run = lock_running_run(run)
        if source.revision != asked.revision:
            raise SourceEdited
        run.outcome = store_discovered_files(source, found, verdicts, by_run=run)
        finish_run(run, found)
    return run


def discover_source(source: Source, rules: list[Harness], notice: ProgressReporter) -> DiscoveryResult:
    """What lies there now; unchanged files are not opened."""
    if source.is_archived:
        return build_refused_result(ARCHIVED_REFUSAL)
    if source.source_kind == SourceKind.PUSHED:
        return discover_pushed_source(source, rules)
    grant = source.grant
    if grant is None or not is_folder_allowed(grant.path):
        return build_refused_result(WITHDRAWN_REFUSAL)
    known = get_known_stamps(source)
    return discover_tree(grant.path, rules, folder=source.folder, known=known, notice=notice)


def build_refused_result(why: Refusal) -> DiscoveryResult:
    return DiscoveryResult((), (), (why,), 0, 0, is_complete=False)


def get_known_stamps(source: Source) -> dict[str, FileStamp]:
    rows = ContextFile.objects.in_workspace(source.workspace_id).filter(
        source=source, is_there=True, problem=""
    )
    columns = rows.values_list("path", "size", "mtime_ns", "inode", "newest__digest")
    return {path: FileStamp(size, mtime, inode, digest or "") for path, size, mtime, inode, digest in columns}


def discover_pushed_source(source: Source, rules: list[Harness]) -> DiscoveryResult:
    """What was pushed; contents that are known are not even loaded."""
    known = get_known_stamps(source)
    return discover_pushed_files(get_pushed_content(source, known), rules, known=known)


def build_progress_reporter(run: RefreshRun) -> ProgressReporter:
    """Told after each file, it writes only now and then."""
    last = time.monotonic()

    def notice(seen: int, read: int, refused: int) -> None:
        nonlocal last
        if time.monotonic() - last > PROGRESS_INTERVAL_SECONDS:
            last = time.monotonic()
            save_run_progress(run, seen, read, refused)

    return notice


def lock_running_run(run: RefreshRun) -> RefreshRun:
    rows = RefreshRun.objects.in_workspace(run.workspace_id).select_for_update(of=("self",))
    held = rows.filter(pk=run.pk, status=RunStatus.RUNNING).first()
    if held is None:
        raise LostRun
    return held


def finish_run(run: RefreshRun, found: DiscoveryResult) -> None:
    # A push may have left refusals of its own before the look began.
    refusals = {one["path"]: one for one in run.refusals}
    refusals |= {refusal.path: refusal._asdict() for refusal in found.refusals}
    run.refusals = list(refusals.values())
    run.seen, run.read, run.refused = found.seen, found.read, len(refusals)
    run.status, run.finished_at = RunStatus.DONE, timezone.now()
    if not found.is_complete:
        whole = next((refusal for refusal in found.refusals if refusal.path == "."), None)
        run.status, run.error = RunStatus.FAILED, whole.reason[:500] if whole else "The look ended early."
    run.save()
