"""Refresh a source: discover its files, evaluate them, and store the result in one transaction."""

import time
from collections.abc import Callable, Iterable, Mapping

from django.db import transaction
from django.utils import timezone

from skills.archives import PushedContent, discover_pushed_files
from skills.discovery import DiscoveryResult, Refusal, discover_tree
from skills.discovery.filesystem import FileStamp
from skills.discovery.harnesses import Harness
from skills.discovery.search import CUT_FOLDER_RULES
from skills.files.discovered_changes import evaluate_discovered_files, store_discovered_files
from skills.models import (
    ContextFile,
    PushedFile,
    RefreshRun,
    RunStatus,
    Source,
    SourceKind,
    is_folder_allowed,
)
from skills.refresh.holds import find_mass_removal, hold_run, log_ended_hold
from skills.refresh.runs import LostRun, save_run_progress
from skills.skill_format.rules import SkillFlaw
from skills.sources.locks import lock_source
from skills.sources.readers import list_source_harnesses


def get_pushed_content(source: Source, known_stamps: Mapping[str, FileStamp]) -> dict[str, PushedContent]:
    """Return the pushed files of a source by path: the bytes of each changed file, the stamp of the others.

    A file is unchanged if its stamp is in `known_stamps`. Its content is not loaded.
    """
    rows = PushedFile.objects.in_workspace(source.workspace_id).filter(source=source)
    columns = rows.values_list("path", "content__size", "content__digest")
    stamps = {path: FileStamp(size, 0, 0, 0, digest) for path, size, digest in columns}
    changed = [path for path, stamp in stamps.items() if known_stamps.get(path) != stamp]
    contents = rows.filter(path__in=changed).values_list("path", "content__data")
    return stamps | {path: bytes(data or b"") for path, data in contents}


MAX_ERROR_LENGTH = 500
PROGRESS_INTERVAL_SECONDS = 0.4
MAX_REFERENCES_NAMED = 3
WITHDRAWN_REFUSAL = Refusal(".", "allowed_folder", "Operators no longer allow this folder. Nothing was read.")
ARCHIVED_REFUSAL = Refusal(".", "archived", "The source has been archived. Nothing was read.")
ProgressReporter = Callable[[int, int, int], None]


class SourceEdited(Exception):
    """The source was edited during the run. The result of the run is discarded."""


def refresh_source(run: RefreshRun) -> RefreshRun:
    """Execute a claimed run: discover and evaluate the files, then store the result in one transaction."""
    original = run.source
    report_progress = build_progress_reporter(run)
    result = discover_source(original, list_source_harnesses(original), report_progress)
    verdicts = evaluate_discovered_files(original, result, report_progress)
    with transaction.atomic():
        source = lock_source(original)
        run = lock_running_run(run)
        if source.revision != original.revision:
            raise SourceEdited
        missing, present = find_mass_removal(source, result, run)
        if missing:
            hold_run(run, source, missing, present)
        else:
            run.outcome = store_discovered_files(source, result, verdicts, by_run=run)
            finish_run(run, source, result)
        save_run_result(run, result, list_reference_notes(source))
    return run


def discover_source(
    source: Source, rules: list[Harness], report_progress: ProgressReporter
) -> DiscoveryResult:
    """Discover the current files of a source. A file whose stamp is unchanged is not opened."""
    if source.is_archived:
        return build_refused_result(ARCHIVED_REFUSAL)
    if source.source_kind == SourceKind.PUSHED:
        return discover_pushed_source(source, rules)
    allowed_folder = source.allowed_folder
    if allowed_folder is None or not is_folder_allowed(allowed_folder.path):
        return build_refused_result(WITHDRAWN_REFUSAL)
    known_stamps = get_known_stamps(source)
    return discover_tree(
        allowed_folder.path,
        rules,
        folder=source.folder,
        known_stamps=known_stamps,
        allow_hard_links=source.allow_hard_links,
        on_progress=report_progress,
    )


def build_refused_result(refusal: Refusal) -> DiscoveryResult:
    return DiscoveryResult((), (), (refusal,), 0, 0, is_complete=False)


def get_known_stamps(source: Source) -> dict[str, FileStamp]:
    rows = ContextFile.objects.in_workspace(source.workspace_id).filter(
        source=source, exists=True, problem=""
    )
    columns = rows.values_list("path", "size", "mtime_ns", "ctime_ns", "inode", "latest__digest")
    return {
        path: FileStamp(size, mtime, ctime, inode, digest or "")
        for path, size, mtime, ctime, inode, digest in columns
    }


def discover_pushed_source(source: Source, rules: list[Harness]) -> DiscoveryResult:
    """Discover the pushed files of a source. The contents of unchanged files are not loaded."""
    known_stamps = get_known_stamps(source)
    return discover_pushed_files(get_pushed_content(source, known_stamps), rules, known_stamps=known_stamps)


def build_progress_reporter(run: RefreshRun) -> ProgressReporter:
    """Build a callback that saves the progress, at most once per PROGRESS_INTERVAL_SECONDS."""
    reported_at = time.monotonic()

    def report_progress(seen: int, read: int, refused: int) -> None:
        nonlocal reported_at
        if time.monotonic() - reported_at > PROGRESS_INTERVAL_SECONDS:
            reported_at = time.monotonic()
            save_run_progress(run, seen, read, refused)

    return report_progress


def lock_running_run(run: RefreshRun) -> RefreshRun:
    rows = RefreshRun.objects.in_workspace(run.workspace_id).select_for_update(of=("self",))
    locked_run = rows.filter(pk=run.pk, status=RunStatus.RUNNING).first()
    if locked_run is None:
        raise LostRun
    return locked_run


def finish_run(run: RefreshRun, source: Source, result: DiscoveryResult) -> None:
    run.status, run.finished_at = RunStatus.DONE, timezone.now()
    if result.is_complete:
        log_ended_hold(source, run)
        crowded = [refusal for refusal in result.refusals if refusal.rule in CUT_FOLDER_RULES]
        run.error = " ".join([f"{refusal.path}: {refusal.reason}" for refusal in crowded])[:MAX_ERROR_LENGTH]
    else:
        root_refusal = next((refusal for refusal in result.refusals if refusal.path == "."), None)
        run.status, run.error = (
            RunStatus.FAILED,
            root_refusal.reason[:MAX_ERROR_LENGTH] if root_refusal else "The refresh run ended early.",
        )


def list_reference_notes(source: Source) -> list[Refusal]:
    """List the skills of the source that refer to files outside of their folders."""
    rows = ContextFile.objects.in_workspace(source.workspace_id).filter(source=source, file_kind="skill")
    skills = rows.filter(exists=True, is_ignored=False).exclude(latest__problems=[]).order_by("path")
    notes = []
    for path, problems in skills.values_list("path", "latest__problems"):
        messages = [row["message"] for row in problems or () if row["flaw"] == SkillFlaw.OUTSIDE_REFERENCE]
        if messages:
            notes.append(Refusal(path, "reference", " ".join(messages[:MAX_REFERENCES_NAMED])))
    return notes


def save_run_result(run: RefreshRun, result: DiscoveryResult, notes: Iterable[Refusal]) -> None:
    """Save the run with the counters of the discovery and everything that was left out."""
    # Keep the refusals that a push stored on this run when it requested the run. A refusal replaces a note on
    # the same path.
    refusals = {refusal["path"]: refusal for refusal in run.refusals}
    refusals |= {refusal.path: refusal._asdict() for refusal in (*notes, *result.notes, *result.refusals)}
    run.refusals = list(refusals.values())
    run.seen, run.read, run.refused = result.seen_count, result.read_count, len(refusals)
    run.save()
