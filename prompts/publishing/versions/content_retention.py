"""Delete file revisions and contents that nothing refers to, some time after they were stored.

Versions are never deleted, so everything that a version refers to stays: its segments, tool definitions,
report, inputs and the revisions of its files.
"""

import json
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from core.db.batch_delete import delete_in_batches
from personas.contents.services import lock_contents
from personas.models import Content
from prompts.models import AgentPrompt, PromptVersion, VersionPart
from prompts.publishing.versions.segments import list_content_digests
from prompts.publishing.versions.selectors import get_contents
from prompts.publishing.versions.stored_inputs import list_manifest_digests
from skills.models import ContextFile, FileRevision, PushedFile

BATCH_SIZE = 1_000
# Per workspace and run of the job; the next run continues.
MAX_BATCHES = 50
# A build is committed less than this long after the creation time of its versions.
MAX_BUILD_TIME = timedelta(hours=1)
VERSION_COLUMNS = ("segments", "tools", "skill_files", "report", "lockfile")


def delete_unused_file_revisions(workspace_id: int, cutoff: datetime) -> int:
    """Delete revisions that were replaced before the cutoff and that no version contains.

    The revisions that a file points to and the trusted one stay.
    """
    files = ContextFile.objects.in_workspace(workspace_id)
    pointers = ("latest", "approved", "active")
    pointed = [Exists(files.filter(**{name: OuterRef("pk")})) for name in pointers]
    parts = VersionPart.objects.in_workspace(workspace_id).filter(
        object_id=OuterRef("file_id"), revision=OuterRef("number")
    )
    trusted = files.filter(pk=OuterRef("file_id"), trusted_digest=OuterRef("digest"))
    rows = FileRevision.objects.in_workspace(workspace_id).filter(last_seen_at__lt=cutoff)
    rows = rows.filter(~Exists(parts), ~Exists(trusted), *[~one for one in pointed])
    return delete_in_batches(rows)


def delete_unused_contents(workspace_id: int, cutoff: datetime) -> int:
    """Delete contents that were stored before the cutoff and that nothing refers to; return their number.

    Each batch is deleted under a lock that keeps builds from storing contents, after the versions that were
    built in the meantime are read. Erased contents stay, because their digests are part of the evidence.
    """
    started = timezone.now()
    used = set(iterate_version_digests(workspace_id, list_workspace_versions(workspace_id)))
    deleted, last_id = 0, 0
    for _ in range(MAX_BATCHES):
        rows = list_candidates(workspace_id, cutoff).filter(pk__gt=last_id).order_by("pk")
        batch = list(rows.values_list("pk", "digest")[:BATCH_SIZE])
        if not batch:
            break
        last_id = batch[-1][0]
        unused = {key: digest for key, digest in batch if digest not in used}
        if unused:
            deleted += delete_batch(workspace_id, unused, started)
    return deleted


@transaction.atomic
def delete_batch(workspace_id: int, unused: dict[int, str], started: datetime) -> int:
    lock_contents(workspace_id, is_shared=False)
    recent = list_workspace_versions(workspace_id).filter(created_at__gte=started - MAX_BUILD_TIME)
    used = set(iterate_version_digests(workspace_id, recent))
    used |= set(AgentPrompt.objects.in_workspace(workspace_id).values_list("report", flat=True))
    keys = [key for key, digest in unused.items() if digest not in used]
    rows = list_candidates(workspace_id, started).filter(pk__in=keys)
    return rows.delete()[0]


def list_candidates(workspace_id: int, cutoff: datetime) -> QuerySet[Content]:
    """List contents that were stored before the cutoff, are not erased and belong to no file."""
    rows = Content.objects.in_workspace(workspace_id).filter(created_at__lt=cutoff, erased_at=None)
    return rows.filter(
        ~Exists(FileRevision.objects.in_workspace(workspace_id).filter(content=OuterRef("pk"))),
        ~Exists(PushedFile.objects.in_workspace(workspace_id).filter(content=OuterRef("pk"))),
    )


def list_workspace_versions(workspace_id: int) -> QuerySet[PromptVersion]:
    return PromptVersion.objects.in_workspace(workspace_id).only(*VERSION_COLUMNS).order_by()


def iterate_version_digests(workspace_id: int, versions: QuerySet[PromptVersion]) -> Iterator[str]:
    """Yield the digest of every content that the versions refer to, including their stored inputs."""
    manifests: set[str] = set()
    for version in versions.iterator(chunk_size=200):
        yield from list_content_digests(version.segments, version.tools)
        yield from [row["content"] for row in version.skill_files]
        yield version.report
        yield from version.lockfile["parts"].values()
        manifests.add(version.lockfile["inputs"])
    yield from manifests
    yield from iterate_input_digests(workspace_id, manifests)


def iterate_input_digests(workspace_id: int, manifests: Iterable[str]) -> Iterator[str]:
    """Yield the digests of the parts and lists of parts that manifests of inputs name."""
    part_lists: set[str] = set()
    for data in iterate_contents(workspace_id, manifests):
        parts, lists = list_manifest_digests(data)
        yield from parts
        part_lists.update(lists)
    yield from part_lists
    for data in iterate_contents(workspace_id, part_lists):
        yield from data


def iterate_contents(workspace_id: int, digests: Iterable[str]) -> Iterator[Any]:
    """Yield contents that are JSON, without erased ones."""
    remaining = iter(digests)
    while batch := list(islice(remaining, BATCH_SIZE)):
        for data in get_contents(workspace_id, batch).values():
            if data is not None:
                yield json.loads(data)
