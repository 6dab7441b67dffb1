"""Find out who pushed or approved the files of a release, from the audit log.

The causes of a build do not tell it: a pushed file may wait for approval, several pushes are read by one
refresh, and a push of the same text changes nothing.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q
from django.utils.translation import gettext as _

from personas.models import AuditEvent, Workspace
from skills.models import ContextFile, FileRevision, Source

FILE_KIND = "context_file"
PUSH_VERBS = ("pushed", "removed file")
# A push during a refresh can be dated this much before the last revision that does not contain it.
LONGEST_REFRESH = timedelta(minutes=10)


@dataclass(frozen=True)
class FileEvent:
    """Something that a user did to a file, for display."""

    at: datetime
    description: str


@dataclass(frozen=True)
class FileHistory:
    """What a user did to some files, and the times at which their contents were first seen."""

    events: Mapping[int, list[FileEvent]]
    revisions: Mapping[int, list[tuple[int, str, datetime]]]

    def find_event(
        self, file: int, revision: int | None, since: datetime | None, until: datetime
    ) -> FileEvent | None:
        """Return what the user did since then, or since the content of the revision was new."""
        start = self.find_start(file, revision, since)
        for event in self.events.get(file, ()):
            if (start is None or event.at > start) and event.at <= until:
                return event
        return None

    def find_start(self, file: int, revision: int | None, since: datetime | None) -> datetime | None:
        """Return from when pushes may have brought the content of the revision. None: from the beginning.

        A content may be older than the released version: it waited for approval, or it was there before.
        """
        rows = self.revisions.get(file, [])
        digests = {number: digest for number, digest, _at in rows}
        if since is None or revision not in digests:
            return since
        first = min(number for number, digest in digests.items() if digest == digests[revision])
        earlier = [at for number, _digest, at in rows if number < first]
        return min(since, max(earlier) - LONGEST_REFRESH) if earlier else None


def load_file_history(
    workspace: Workspace | int, files: Iterable[int], is_by_user: Q, own_label: str
) -> FileHistory:
    """Load what a user did to these files. `is_by_user` selects the audit events of the user."""
    rows = ContextFile.objects.in_workspace(workspace).filter(pk__in=set(files))
    columns = list(rows.values_list("pk", "source_id", "path"))
    if not columns:
        return FileHistory({}, {})
    paths: dict[int, dict[str, int]] = defaultdict(dict)
    for file, source, path in columns:
        paths[source][path] = file
    names = {file: path for file, _source, path in columns}
    about = Q(kind="file", object_id__in=names) | Q(
        kind=Source.kind, object_id__in=paths, verb__in=PUSH_VERBS
    )
    events: dict[int, list[FileEvent]] = defaultdict(list)
    for row in AuditEvent.objects.in_workspace(workspace).filter(is_by_user, about).order_by("-pk"):
        for file in list_event_files(row, paths):
            text = describe_file_event(names[file], row, own_label)
            events[file].append(FileEvent(row.at, text))
    return FileHistory(events, load_revision_times(workspace, names))


def list_event_files(event: AuditEvent, paths: Mapping[int, Mapping[str, int]]) -> Iterator[int]:
    """Yield the files that an event concerns. A push that does not list its paths concerns all files."""
    if event.kind == "file":
        yield event.object_id
        return
    values = {**(event.before or {}), **(event.after or {})}
    pushed = [values["path"]] if "path" in values else values.get("paths")
    for path, file in paths[event.object_id].items():
        if pushed is None or path in pushed:
            yield file


def describe_file_event(path: str, event: AuditEvent, own_label: str) -> str:
    values = {"path": path, "verb": event.verb, "who": event.actor_label}
    if event.actor_label == own_label:
        return _("file %(path)s, %(verb)s") % values
    return _("file %(path)s, %(verb)s as %(who)s") % values


def load_revision_times(
    workspace: Workspace | int, files: Iterable[int]
) -> dict[int, list[tuple[int, str, datetime]]]:
    rows = FileRevision.objects.in_workspace(workspace).filter(file__in=list(files))
    times: dict[int, list[tuple[int, str, datetime]]] = defaultdict(list)
    for file, number, digest, at in rows.values_list("file_id", "number", "digest", "first_seen_at"):
        times[file].append((number, digest, at))
    return times
