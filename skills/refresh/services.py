"""One look at a source: discover, judge what was read, and store it, all or nothing."""

import time
from collections.abc import Callable, Mapping

from django.db import transaction
from django.utils import timezone

from skills.archives import Pushed, discover_pushed
from skills.discovery import Found, Refusal, discover_tree
from skills.discovery.filesystem import Stamp
from skills.discovery.harnesses import Harness
from skills.files.store import judge_found, store_found
from skills.models import ContextFile, PushedFile, RefreshRun, RunStatus, Source, SourceKind, is_allowed
from skills.refresh.runs import LostRun, note_progress
from skills.rule_sets.effective import harnesses_of
from skills.sources.locks import hold


def pushed_since(source: Source, known: Mapping[str, Stamp]) -> dict[str, Pushed]:
    """By path; a file that was looked at before as it is now gives its stamp, so nothing is read again."""
    rows = PushedFile.objects.in_workspace(source.workspace_id).filter(source=source)
    columns = rows.values_list("path", "content__size", "content__digest")
    stamps = {path: Stamp(size, 0, 0, digest) for path, size, digest in columns}
    news = [path for path, stamp in stamps.items() if known.get(path) != stamp]
    contents = rows.filter(path__in=news).values_list("path", "content__data")
    return stamps | {path: bytes(data or b"") for path, data in contents}


PROGRESS_SECONDS = 0.4
WITHDRAWN = Refusal(".", "grant", "Operators no longer allow this folder. Nothing was read.")
ARCHIVED = Refusal(".", "archived", "The source has been archived. Nothing was read.")
Notice = Callable[[int, int, int], None]


class SourceEdited(Exception):
    """What was found belongs to the source as it was before; it is thrown away."""


def refresh_source(run: RefreshRun) -> RefreshRun:
    """Carry out a claimed run; what is found becomes visible in one moment or not at all."""
    asked = run.source
    notice = progress_of(run)
    found = look(asked, harnesses_of(asked.workspace, asked.harnesses), notice)
    verdicts = judge_found(asked, found, notice)
    with transaction.atomic():
        source = hold(asked)
        run = still_ours(run)
        if source.revision != asked.revision:
            raise SourceEdited
        run.outcome = store_found(source, found, verdicts, by_run=run)
        finish(run, found)
    return run


def look(source: Source, rules: list[Harness], notice: Notice) -> Found:
    """What lies there now; unchanged files are not opened."""
    if source.is_archived:
        return nothing(ARCHIVED)
    if source.source_kind == SourceKind.PUSHED:
        return pushed(source, rules)
    grant = source.grant
    if grant is None or not is_allowed(grant.path):
        return nothing(WITHDRAWN)
    known = known_stamps(source)
    return discover_tree(grant.path, rules, folder=source.folder, known=known, notice=notice)


def nothing(why: Refusal) -> Found:
    return Found((), (), (why,), 0, 0, is_complete=False)


def known_stamps(source: Source) -> dict[str, Stamp]:
    rows = ContextFile.objects.in_workspace(source.workspace_id).filter(
        source=source, is_there=True, problem=""
    )
    columns = rows.values_list("path", "size", "mtime_ns", "inode", "newest__digest")
    return {path: Stamp(size, mtime, inode, digest or "") for path, size, mtime, inode, digest in columns}


def pushed(source: Source, rules: list[Harness]) -> Found:
    """What was pushed; contents that are known are not even loaded."""
    known = known_stamps(source)
    return discover_pushed(pushed_since(source, known), rules, known=known)


def progress_of(run: RefreshRun) -> Notice:
    """Told after each file, it writes only now and then."""
    last = time.monotonic()

    def notice(seen: int, read: int, refused: int) -> None:
        nonlocal last
        if time.monotonic() - last > PROGRESS_SECONDS:
            last = time.monotonic()
            note_progress(run, seen, read, refused)

    return notice


def still_ours(run: RefreshRun) -> RefreshRun:
    rows = RefreshRun.objects.in_workspace(run.workspace_id).select_for_update(of=("self",))
    held = rows.filter(pk=run.pk, status=RunStatus.RUNNING).first()
    if held is None:
        raise LostRun
    return held


def finish(run: RefreshRun, found: Found) -> None:
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
