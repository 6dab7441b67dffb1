"""Whether the files in an open prompt have changed since it was drawn."""

from personas.models import Workspace
from prompts.studio.text_view import Reading
from skills.models import ContextFile

MOST = 50


def files_said(reading: Reading | None) -> str:
    """The files of a prompt with their revisions, short enough for an address."""
    sources = reading.sources if reading else {}
    files = sorted({(int(one.id), one.revision) for one in sources if is_file(one.kind, one.id)})
    return ",".join(f"{key}.{number}" for key, number in files[:MOST])


def is_file(kind: str, key: str) -> bool:
    return kind == "context_file" and key.isdecimal()


def files_now(workspace: Workspace, said: str) -> list[ContextFile]:
    """Those that are at another revision by now."""
    pairs = [pair.partition(".")[::2] for pair in said.split(",")[:MOST]]
    seen = {int(key): number for key, number in pairs if key.isascii() and key.isdecimal() and len(key) < 19}
    if not seen:
        return []
    rows = ContextFile.objects.in_workspace(workspace).filter(pk__in=seen).select_related("in_force")
    return [row for row in rows if str(row.in_force.number if row.in_force else 0) != seen[row.pk]]
