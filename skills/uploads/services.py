"""Files that come by upload or API: stored as they were pushed, then looked through like a folder."""

from collections.abc import Iterable, Mapping, Sequence

from django.db import transaction
from django.utils.translation import gettext as _

from personas.actors import Actor
from personas.audit.services import note_event
from personas.errors import DomainError, Invalid
from skills.archives import Bundle, read_files
from skills.archives.paths import alike, clashes
from skills.discovery import Refusal
from skills.discovery.harnesses import Caps
from skills.discovery.search import WHOLE
from skills.files.store import Contents
from skills.models import PushedFile, RefreshRun, Source, SourceKind
from skills.refresh.runs import NotRefreshable, request_refresh
from skills.sources.locks import hold

CAPS = Caps()
TAKEN = "The source already holds a file or folder that many disks take for this one."


class NotPushed(DomainError):
    """A source whose files lie in a folder; nobody can push there."""

    code = "not_pushed"


class NotThere(DomainError):
    """A pushed file that the source does not hold."""

    code = "not_found"


class BadBundle(DomainError):
    """A push of which nothing was stored, with the reason for each file."""

    code = "bad_bundle"

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        whole = next((refusal.reason for refusal in refusals if refusal.path == WHOLE), "")
        self.refusals = tuple(refusals)
        super().__init__(whole or _("None of its files can be taken."))


@transaction.atomic
def push_bundle(source: Source, bundle: Bundle, *, replace: bool, by: Actor) -> RefreshRun:
    """Store a push and ask for a look; `replace` lets go of files that it does not name.

    A file that was refused keeps what it said before, as one that cannot be read on disk does.
    """
    source = hold_pushed(source)
    have = stored_files(source)
    named = {path for path, _ in bundle.files} | {refusal.path for refusal in bundle.refusals}
    kept = {path: row for path, row in have.items() if path in named or not replace}
    bundle = without_clashes(bundle, kept)
    refuse_unsound(bundle)
    refuse_too_much(bundle, kept)
    told = write(source, bundle, have) | {"removed": remove(source, set(have) - set(kept))}
    told["refused"] = len(bundle.refusals)
    note_event(source.workspace_id, "pushed", source.kind, source.pk, str(source), by=by, after=told)
    return awaited_run(source, bundle, by=by)


def push_file(source: Source, path: str, data: bytes, *, by: Actor) -> RefreshRun:
    """Store one file beside the others, or in place of its earlier self."""
    try:
        return push_bundle(source, read_files([(path, data)]), replace=False, by=by)
    except BadBundle as error:
        raise Invalid.on("path", error.refusals[0].reason) from error


@transaction.atomic
def remove_pushed(source: Source, path: str, *, by: Actor) -> RefreshRun:
    """Let go of one pushed file; its revisions stay for the record."""
    source = hold_pushed(source)
    if not remove(source, {path}):
        raise NotThere(_("There is no pushed file %(path)s here.") % {"path": path[:200]})
    told = {"path": path}
    note_event(source.workspace_id, "removed file", source.kind, source.pk, str(source), by=by, before=told)
    return awaited_run(source, Bundle((), ()), by=by)


def hold_pushed(source: Source) -> Source:
    source = hold(source)
    if source.source_kind != SourceKind.PUSHED:
        raise NotPushed(_("The files of this source lie in a folder. Change them there."))
    if source.is_archived:
        raise NotRefreshable(_("This source is archived. Restore it to push files."))
    return source


def stored_files(source: Source) -> dict[str, PushedFile]:
    rows = PushedFile.objects.in_workspace(source.workspace_id).filter(source=source)
    return {row.path: row for row in rows.select_related("content").defer("content__data")}


def without_clashes(bundle: Bundle, kept: Iterable[str]) -> Bundle:
    """A push is sound in itself; beside what is there already it must be so too."""
    clashing = clashes((path, False) for path in {*kept, *[path for path, _ in bundle.files]})
    stuck = {alike(path) for path in clashing}
    refused = {path for path, _ in bundle.files if not stuck.isdisjoint(prefixes(alike(path)))}
    files = tuple([(path, data) for path, data in bundle.files if path not in refused])
    return Bundle(files, (*bundle.refusals, *[Refusal(path, "alike", TAKEN) for path in sorted(refused)]))


def prefixes(path: str) -> list[str]:
    """The path and every folder on the way to it."""
    return ["/".join(path.split("/")[:count]) for count in range(1, path.count("/") + 2)]


def refuse_unsound(bundle: Bundle) -> None:
    if not bundle.files and not bundle.refusals:
        raise BadBundle([Refusal(WHOLE, "empty", _("There are no files in it."))])
    if not bundle.files or any(refusal.path == WHOLE for refusal in bundle.refusals):
        raise BadBundle(bundle.refusals)


def refuse_too_much(bundle: Bundle, kept: Mapping[str, PushedFile]) -> None:
    """A source never holds more than one look may read."""
    sizes = {path: row.content.size for path, row in kept.items()}
    sizes |= {path: len(data) for path, data in bundle.files}
    if len(sizes) > CAPS.files:
        said = _("A source holds at most %(most)s pushed files; this would make it %(count)s.")
        counts = {"most": f"{CAPS.files:,}", "count": f"{len(sizes):,}"}
        raise BadBundle([Refusal(WHOLE, "files", said % counts)])
    if sum(sizes.values()) > CAPS.total_bytes:
        said = _("All pushed files of a source together may have at most %(most)s bytes.")
        raise BadBundle([Refusal(WHOLE, "total", said % {"most": f"{CAPS.total_bytes:,}"})])


def write(source: Source, bundle: Bundle, have: Mapping[str, PushedFile]) -> dict[str, int]:
    """New and changed rows; what was pushed again unchanged is left alone."""
    contents = Contents(source.workspace)
    digests = {path: contents.take(data).digest for path, data in bundle.files}
    contents.keep()
    added = [path for path in digests if path not in have]
    changed = [path for path in digests if path in have and have[path].content.digest != digests[path]]
    rows = PushedFile.objects.in_workspace(source.workspace_id)
    new = [PushedFile(workspace=source.workspace, source=source, path=path) for path in added]
    for row in new:
        row.content = contents.by_digest[digests[row.path]]
    rows.bulk_create(new, batch_size=500)
    for path in changed:
        have[path].content = contents.by_digest[digests[path]]
        have[path].save()
    return {"added": len(added), "changed": len(changed)}


def remove(source: Source, paths: set[str]) -> int:
    rows = PushedFile.objects.in_workspace(source.workspace_id).filter(source=source, path__in=paths)
    return rows.delete()[0]


def awaited_run(source: Source, bundle: Bundle, *, by: Actor) -> RefreshRun:
    """The run that will see these files; it begins with what the push refused."""
    run = request_refresh(source, cause="push", by=by)
    refusals = {one["path"]: one for one in run.refusals}
    refusals |= {refusal.path: refusal._asdict() for refusal in bundle.refusals}
    mended = {path for path, _ in bundle.files}
    run.refusals = [one for path, one in refusals.items() if path not in mended]
    run.refused = len(run.refusals)
    run.save(update_fields=["refusals", "refused"])
    return run
