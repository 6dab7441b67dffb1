"""The questions asked about found files: what they say, said before, and who vouched for it."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from personas.models import Agent, Workspace
from skills.models import ContextFile, FileRevision, PushedFile, Reach, RefreshRun, SourceKind, Waiver
from skills.sources.models import FINISHED_STATUSES
from skills.sources.readers import SourceReader, get_readers_by_agent


def list_context_files(workspace: Workspace) -> QuerySet[ContextFile]:
    rows = ContextFile.objects.in_workspace(workspace)
    return rows.select_related("source__workspace", "newest", "agreed", "in_force")


def get_seen_digest(file: ContextFile) -> str:
    """What someone looking at the file now agrees to; nothing, when it is gone."""
    return file.newest.digest if file.newest and file.is_there else ""


@dataclass(frozen=True)
class RevisionText:
    """What a revision says, as far as it can be shown."""

    text: str
    is_erased: bool = False


def get_revision_text(revision: FileRevision) -> RevisionText:
    """Also of a file that was refused for not being text: bytes that are none are written out."""
    data = revision.content.data
    if data is None:
        return RevisionText("", is_erased=True)
    return RevisionText(bytes(data).decode(errors="backslashreplace"))


def list_revisions(file: ContextFile) -> QuerySet[FileRevision]:
    rows = FileRevision.objects.in_workspace(file.workspace_id).filter(file=file)
    return rows.order_by("-number")


def list_waivers(file: ContextFile) -> QuerySet[Waiver]:
    return Waiver.objects.in_workspace(file.workspace_id).filter(file=file).order_by("-pk")


def get_last_scanned_at(file: ContextFile) -> datetime | None:
    """When the source was last looked through: what lay there then was seen."""
    runs = RefreshRun.objects.in_workspace(file.workspace_id).filter(source=file.source_id)
    last = runs.filter(status__in=FINISHED_STATUSES).order_by("-pk").first()
    return last.finished_at if last else None


def list_agents_by_id(workspace: Workspace, ids: list[int]) -> list[Agent]:
    rows = Agent.objects.in_workspace(workspace).filter(pk__in=ids)
    return list(rows.order_by("name", "pk"))


def get_compared_revisions(file: ContextFile) -> tuple[FileRevision, FileRevision] | None:
    """What to lay beside what: the words in force or those last agreed to, and the newest."""
    newest = file.newest
    if newest is None:
        return None
    older = file.in_force if file.in_force and file.in_force_id != newest.pk else file.agreed
    return (older, newest) if older is not None and older.digest != newest.digest else None


def get_skill_folder(file: ContextFile) -> tuple[str, list[tuple[str, bytes]]] | None:
    """A skill as a folder to take away: its name, and its files; None when its words were erased."""
    revision = file.in_force or file.newest
    if revision is None or revision.content.data is None:
        return None
    folder, _, _ = file.path.rpartition("/")
    name = folder.rpartition("/")[2] or file.name or "skill"
    return name, [(f"{name}/SKILL.md", bytes(revision.content.data)), *list_bundled_files(file, folder, name)]


def list_bundled_files(file: ContextFile, folder: str, name: str) -> list[tuple[str, bytes]]:
    """What was pushed along with a skill; of a folder on disk nothing but the skill is kept."""
    if file.source.source_kind != SourceKind.PUSHED or not folder:
        return []
    rows = PushedFile.objects.in_workspace(file.workspace_id).filter(source=file.source)
    rows = rows.filter(path__startswith=f"{folder}/").exclude(path=file.path)
    return [
        (f"{name}/{row.path[len(folder) + 1 :]}", bytes(row.content.data or b""))
        for row in rows.select_related("content")
    ]


PathsBySource = dict[int, set[str]]


def get_known_paths(workspace: Workspace, sources: Collection[int]) -> tuple[PathsBySource, PathsBySource]:
    """By source: every path that has a row, and those that prompts can come upon now."""
    every: PathsBySource = defaultdict(set)
    live: PathsBySource = defaultdict(set)
    if not sources:
        return every, live
    rows = ContextFile.objects.in_workspace(workspace).filter(source__in=sources).order_by()
    columns = rows.values_list("source_id", "path", "is_ignored", "is_there", "in_force_id")
    for source_id, path, is_ignored, is_there, in_force in columns:
        every[source_id].add(path)
        if not is_ignored and (is_there or in_force):
            live[source_id].add(path)
    return every, live


def count_readers(workspace: Workspace, files: Collection[ContextFile], live: PathsBySource) -> Counter[int]:
    """How many live agents' rules name each file, by its id; of a file that is gone, how many would."""
    found = [file for file in files if file.file_kind != "skill" or file.reach == Reach.FOUND]
    here: PathsBySource = defaultdict(set)
    gone: PathsBySource = defaultdict(set)
    for file in found:
        (here if file.path in live[file.source_id] else gone)[file.source_id].add(file.path)
    named: Counter[tuple[int, str]] = Counter()
    for outlook, agents in group_source_readers(get_readers_by_agent(workspace).values()) if found else ():
        source = outlook.source.pk
        for asked, stored in ((here, live[source]), (gone, live[source] | gone[source])):
            if asked[source]:
                paths = {path for _, path in outlook.paths(stored)} & asked[source]
                named.update({(source, path): agents for path in paths})
    return Counter({file.pk: named[file.source_id, file.path] for file in found})


def group_source_readers(outlooks: Iterable[SourceReader]) -> list[tuple[SourceReader, int]]:
    """Each different outlook once, with how many live agents have it: working one out takes a while."""
    sizes: Counter[tuple[int, str, str]] = Counter()
    examples: dict[tuple[int, str, str], SourceReader] = {}
    for one in outlooks:
        if one.agent.archived_at is None:
            key = (one.source.pk, one.harness.name, one.working_directory)
            sizes[key] += 1
            examples[key] = one
    return [(examples[key], size) for key, size in sizes.items()]
