"""What was pushed to a source, with the bytes of those files only whose content is news."""

from collections.abc import Mapping

from skills.archives import Pushed
from skills.discovery.filesystem import Stamp
from skills.models import PushedFile, Source


def pushed_since(source: Source, known: Mapping[str, Stamp]) -> dict[str, Pushed]:
    """By path; a file that was looked at before as it is now gives its stamp, so nothing is read again."""
    rows = PushedFile.objects.in_workspace(source.workspace_id).filter(source=source)
    columns = rows.values_list("path", "content__size", "content__digest")
    stamps = {path: Stamp(size, 0, 0, digest) for path, size, digest in columns}
    news = [path for path, stamp in stamps.items() if known.get(path) != stamp]
    contents = rows.filter(path__in=news).values_list("path", "content__data")
    return stamps | {path: bytes(data or b"") for path, data in contents}
