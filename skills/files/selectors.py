"""Queries on context files: revisions, waivers, texts, and the agents whose rules match them."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F, Q, QuerySet

from personas.models import Agent, Workspace
from skills.files.reasons import STATUSES_BY_SEVERITY
from skills.models import AssignedTo, ContextFile, FileRevision, PushedFile, RefreshRun, SourceKind, Waiver
from skills.scanning import mask_secrets
from skills.sources.models import FINISHED_STATUSES
from skills.sources.readers import ContextReader

# The files in the inbox: their status calls for a decision, and nobody has decided yet.
NEEDS_REVIEW = Q(is_resolved=False, status__in=STATUSES_BY_SEVERITY, source__archived_at=None)


def needs_review(file: ContextFile) -> bool:
    """Whether the file is in the inbox, as `NEEDS_REVIEW` says for a query."""
    return not file.is_resolved and file.status in STATUSES_BY_SEVERITY and not file.source.is_archived


def list_context_files(workspace: Workspace) -> QuerySet[ContextFile]:
    rows = ContextFile.objects.in_workspace(workspace)
    return rows.select_related("source__workspace", "latest", "approved", "active")


def list_untrusted_skills(workspace: Workspace) -> QuerySet[ContextFile]:
    """Return the skills with a active revision that nobody has trusted.

    There are such skills only where trust is not needed. Prompts would lose them if it were needed.
    """
    rows = ContextFile.objects.in_workspace(workspace).filter(file_kind="skill", active__isnull=False)
    untrusted = rows.exclude(active__digest=F("trusted_digest"))
    return untrusted.select_related("source__workspace", "active").order_by("name", "path", "pk")


def get_seen_digest(file: ContextFile) -> str:
    """Return the digest that a request to approve the file must contain. Empty if the file is missing."""
    return file.latest.digest if file.latest and file.exists else ""


@dataclass(frozen=True)
class RevisionText:
    """The text of a revision with its secrets masked, or the fact that its content was erased."""

    text: str
    is_erased: bool = False
    # Whether secrets in the text were masked.
    is_masked: bool = False


def get_revision_text(revision: FileRevision) -> RevisionText:
    """Decode the revision's content for display, and mask its secrets.

    Bytes that are not valid UTF-8 become backslash escapes.
    """
    data = revision.content.data
    if data is None:
        return RevisionText("", is_erased=True)
    text = bytes(data).decode(errors="backslashreplace")
    masked = mask_secrets(text)
    return RevisionText(masked, is_masked=masked != text)


def list_revisions(file: ContextFile) -> QuerySet[FileRevision]:
    rows = FileRevision.objects.in_workspace(file.workspace_id).filter(file=file)
    return rows.order_by("-number")


def list_waivers(file: ContextFile) -> QuerySet[Waiver]:
    return Waiver.objects.in_workspace(file.workspace_id).filter(file=file).order_by("-pk")


def get_last_scanned_at(file: ContextFile) -> datetime | None:
    """Return when the last refresh of the file's source finished."""
    runs = RefreshRun.objects.in_workspace(file.workspace_id).filter(source=file.source_id)
    last = runs.filter(status__in=FINISHED_STATUSES).order_by("-pk").first()
    return last.finished_at if last else None


def list_agents_by_id(workspace: Workspace, ids: list[int]) -> list[Agent]:
    rows = Agent.objects.in_workspace(workspace).filter(pk__in=ids)
    return list(rows.order_by("name", "pk"))


def get_compared_revisions(file: ContextFile) -> tuple[FileRevision, FileRevision] | None:
    """Return the older and the newer revision to show as a diff, or None if they do not differ.

    The newer one is the latest revision. The older one is the active revision or, if that is the latest
    too or there is none, the last approved revision.
    """
    latest = file.latest
    if latest is None:
        return None
    older = file.active if file.active and file.active_id != latest.pk else file.approved
    return (older, latest) if older is not None and older.digest != latest.digest else None


def get_skill_folder(file: ContextFile) -> tuple[str, list[tuple[str, bytes]]] | None:
    """Return the folder name and the files of a skill for download, or None if its content was erased.

    Each file is a pair of its path in the archive and its bytes.
    """
    revision = file.active or file.latest
    if revision is None or revision.content.data is None:
        return None
    folder, _, _ = file.path.rpartition("/")
    name = folder.rpartition("/")[2] or file.name or "skill"
    return name, [(f"{name}/SKILL.md", bytes(revision.content.data)), *list_bundled_files(file, folder, name)]


def list_bundled_files(file: ContextFile, folder: str, name: str) -> list[tuple[str, bytes]]:
    """Return the files next to the SKILL.md in the skill's folder, if the source consists of pushed files.

    For a folder source the list is empty, because only the SKILL.md of each skill is stored.
    """
    rows = query_bundled_files(file, folder).select_related("content")
    return [(f"{name}/{row.path[len(folder) + 1 :]}", bytes(row.content.data or b"")) for row in rows]


def list_bundled_paths(file: ContextFile) -> list[str]:
    """List the paths, relative to the skill's folder, of the files that were pushed with its SKILL.md."""
    folder, _, _ = file.path.rpartition("/")
    paths = query_bundled_files(file, folder).order_by("path").values_list("path", flat=True)
    return [path[len(folder) + 1 :] for path in paths]


def query_bundled_files(file: ContextFile, folder: str) -> QuerySet[PushedFile]:
    rows = PushedFile.objects.in_workspace(file.workspace_id).filter(source=file.source)
    if file.source.source_kind != SourceKind.PUSHED or not folder:
        return rows.none()
    return rows.filter(path__startswith=f"{folder}/").exclude(path=file.path)


PathsBySource = dict[int, set[str]]


def get_known_paths(
    workspace: Workspace | int, sources: Collection[int]
) -> tuple[PathsBySource, PathsBySource]:
    """Return two mappings from source id to paths: all known paths, and the paths that rules can match now.

    Rules can match a file that is not ignored and that is present or still has a active revision.
    """
    known: PathsBySource = defaultdict(set)
    live: PathsBySource = defaultdict(set)
    if not sources:
        return known, live
    rows = ContextFile.objects.in_workspace(workspace).filter(source__in=sources).order_by()
    columns = rows.values_list("source_id", "path", "is_ignored", "exists", "active_id")
    for source_id, path, is_ignored, exists, active in columns:
        known[source_id].add(path)
        if not is_ignored and (exists or active):
            live[source_id].add(path)
    return known, live


def count_readers(
    readers: Iterable[ContextReader], files: Collection[ContextFile], live: PathsBySource
) -> Counter[int]:
    """Count, by file id, the active agents whose discovery rules match the file.

    `readers` are the readers of the workspace. `live` holds the paths that rules can match now, by source id.
    A missing file is matched as if it were still present. Skills that users assign to agents are not counted.
    """
    matched_by_rules = [
        file for file in files if file.file_kind != "skill" or file.assigned_to == AssignedTo.WHERE_FOUND
    ]
    present: PathsBySource = defaultdict(set)
    missing: PathsBySource = defaultdict(set)
    for file in matched_by_rules:
        (present if file.path in live[file.source_id] else missing)[file.source_id].add(file.path)
    counts: Counter[tuple[int, str]] = Counter()
    for reader, agents in group_source_readers(readers) if matched_by_rules else ():
        for paths_by_source, others in ((present, {}), (missing, missing)):
            if any(paths_by_source.get(source) for source in reader.source_ids):
                stored = {pk: live[pk] | others.get(pk, set()) for pk in reader.source_ids}
                for one in reader.match_files(stored):
                    if one.path in paths_by_source.get(one.source, ()):
                        counts[one.source, one.path] += agents
    return Counter({file.pk: counts[file.source_id, file.path] for file in matched_by_rules})


def group_source_readers(readers: Iterable[ContextReader]) -> list[tuple[ContextReader, int]]:
    """Group the readers of active agents by sources, rules and working directory.

    The rules match the same files for all agents of a group, so this expensive step is needed only once per
    group. Return one reader of each group with the number of agents in the group.
    """
    sizes: Counter[tuple[object, ...]] = Counter()
    examples: dict[tuple[object, ...], ContextReader] = {}
    for reader in readers:
        if reader.agent.archived_at is None:
            sizes[reader.match_key] += 1
            examples[reader.match_key] = reader
    return [(examples[key], size) for key, size in sizes.items()]
