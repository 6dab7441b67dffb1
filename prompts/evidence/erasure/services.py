"""Erase a memory or user profile from every version: the text is deleted, hashes and numbers are kept.

The first transaction removes the text, so that nobody can read it any more. Rebuilding the prompts is part of
that transaction if they are few; otherwise a worker does it in a second transaction.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from django.conf import settings
from django.db import transaction
from django.db.models import Q, TextField
from django.db.models.functions import Cast
from django.utils import timezone

from core.db.write_ahead_log import truncate_write_ahead_log
from personas.actors import Actor
from personas.erasure.services import erase_contents, erase_record_text, list_personal_texts
from personas.models import Erasure, ErasureProgress, Record, Workspace
from personas.records.services import lock_record
from personas.tenancy.lost_nodes import lock_workspace
from prompts.evidence.erasure.call_data import erase_call_data_containing, is_search_small
from prompts.evidence.erasure.label_builds import replace_versions
from prompts.evidence.erasure.label_moves import list_labels_on_versions, move_labels_off_erased
from prompts.models import AgentPrompt, PromptVersion
from prompts.publishing.builds.progress import list_agent_channels
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.comments.services import erase_comments
from prompts.publishing.labels.services import lock_prompts
from prompts.publishing.provenance.usage import iterate_record_ranges
from prompts.publishing.versions.segments import list_content_digests
from prompts.publishing.versions.selectors import find_tombstones, get_contents, list_erasable_records

T = TypeVar("T")
# How many ranges, ids or digests one query contains.
CHUNK_SIZE = 200


def erase_record(record: Record, *, reason: str, by: Actor) -> Erasure:
    """Erase a record, its revisions and its text in all versions."""
    [erasure] = erase_records([record], reason=reason, by=by)
    return erasure


@transaction.atomic
def erase_records(records: Sequence[Record], *, reason: str, by: Actor) -> list[Erasure]:
    """Erase records, their revisions and their text in all versions, in one transaction.

    The values of calls that contain the text are erased too. If more than DRAMATIS_BUILD_AT_ONCE prompts must
    be rebuilt, or much call data searched, the erasures are returned with the status `rebuilding`, and the
    caller must enqueue `finish_erasure_job`. Until that has run, labels may point to versions that contain an
    erased record, and fetches of these get 410.
    """
    # Lock all records before the first prompt, as edits do, so that an edit and an erasure cannot deadlock.
    for record in sorted(records, key=lambda one: (one.kind, one.pk)):
        lock_record(record)
    # Remove all texts before the first rebuild, which would otherwise store the text of another record again.
    erasures = [remove_record(record, reason=reason, by=by) for record in records]
    # Robust: the erasure is committed by then, so an error here must not be reported as a failed erasure.
    transaction.on_commit(truncate_write_ahead_log, robust=True)
    agents = {prompt.agent_id for erasure in erasures for prompt in list_affected_prompts(erasure)}
    for erasure in erasures:
        prompts = list_agent_channels(erasure.workspace_id, agents).count()
        if erasure.pending_texts is not None or prompts > settings.DRAMATIS_BUILD_AT_ONCE:
            return erasures
    return [finish_erasure(erasure.workspace_id, erasure.pk) for erasure in erasures]


def remove_record(record: Record, *, reason: str, by: Actor) -> Erasure:
    """Remove the text of a record from all tables, and return the tombstone. Prompts are not rebuilt."""
    texts, users = list_personal_texts(record), record.agent_ids()
    kind, key, workspace = record.kind, record.pk, record.workspace_id
    erasure = erase_record_text(record, reason=reason, by=by)
    lock_builds(workspace, users)
    versions = list(iterate_versions_with_record(workspace, kind, key))
    erase_comments(record, {version.pk for version in versions}, texts)
    digests = set(iterate_record_digests(versions, kind, key)) | find_digests_containing(
        workspace, versions, texts
    )
    parts = set(iterate_part_digests(workspace, kind, key))
    erase_contents(workspace, parts | (digests - find_shared_digests(workspace, digests)))
    erasure.digests, erasure.versions = (
        sorted({*erasure.digests, *parts, *digests}),
        sorted({*erasure.versions, *(row.pk for row in versions)}),
    )
    if is_search_small(workspace):
        erase_call_data_containing(workspace, texts)
    else:
        erasure.pending_texts = texts
    # Set the time even if the row exists from an earlier erasure. Saving the row also changes the erasure
    # counter, which invalidates the texts in serving caches.
    erasure.at = erasure.rebuilding_since = timezone.now()
    erasure.save(update_fields=["digests", "versions", "at", "rebuilding_since", "pending_texts"])
    return erasure


@transaction.atomic
def finish_erasure(workspace: Workspace | int, key: int) -> Erasure:
    """Rebuild the prompts that contained the erased text, and move labels to versions that can be served.

    A second call changes nothing. Production of a reviewed agent and protected labels move to their own
    version without the record; if that cannot be built, they are removed and a release is requested.
    """
    erasure = Erasure.objects.in_workspace(workspace).select_for_update().get(pk=key)
    if erasure.status == ErasureProgress.DONE:
        return erasure
    # Lock the workspace before the prompts, as a request for a release does, so that the two cannot deadlock.
    lock_workspace(erasure.workspace_id)
    affected = list_affected_prompts(erasure)
    prompts = {row.pk: row for row in lock_prompts(erasure.workspace_id, [prompt.pk for prompt in affected])}
    labels = list_labels_on_versions(erasure.workspace_id, set(erasure.versions))
    governed = {label.version.pk: label.version for label in labels if label.is_governed}
    replacements = replace_versions(erasure, prompts, governed.values(), at=timezone.now())
    # Rebuild after the versions of labels are replaced, so that the latest version has the current records.
    rebuild_agents(erasure.workspace_id, {prompt.agent_id for prompt in affected})
    move_labels_off_erased(erasure, labels, replacements)
    erasure.rebuilding_since = None
    erasure.save(update_fields=["rebuilding_since"])
    return erasure


def list_affected_prompts(erasure: Erasure) -> Sequence[AgentPrompt]:
    """List the prompts of which a version contained the erased text, in the order of their locks."""
    versions = PromptVersion.objects.in_workspace(erasure.workspace_id)
    ids = {
        prompt
        for chunk in split_in_chunks(erasure.versions)
        for prompt in versions.filter(pk__in=chunk).values_list("prompt_id", flat=True)
    }
    return list(AgentPrompt.objects.in_workspace(erasure.workspace_id).filter(pk__in=ids).order_by("pk"))


def iterate_versions_with_record(workspace: Workspace | int, kind: str, key: int) -> Iterator[PromptVersion]:
    rows = PromptVersion.objects.in_workspace(workspace)
    for ranges in split_in_chunks(iterate_record_ranges(workspace, kind, key)):
        condition = Q()
        for prompt, versions in ranges:
            upto = Q() if versions.last is None else Q(number__lte=versions.last)
            condition |= Q(prompt=prompt, number__gte=versions.first) & upto
        yield from rows.filter(condition).iterator(chunk_size=500)


def split_in_chunks(values: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(values)
    while chunk := list(islice(rest, CHUNK_SIZE)):
        yield chunk


def iterate_record_digests(versions: Iterable[PromptVersion], kind: str, key: int) -> Iterator[str]:
    """Yield the content digests of segments that originate from the record."""
    for version in versions:
        for row in version.segments:
            origin = row.get("origin", {})
            if (origin.get("kind"), origin.get("id")) == (kind, str(key)):
                yield from (row[name] for name in ("content", "given") if name in row)


def iterate_part_digests(workspace: Workspace | int, kind: str, key: int) -> Iterator[str]:
    """Yield the content digests of the record in the stored inputs of versions.

    Every revision of the record is in the lockfile of the version that used it first. That may be a version
    whose text does not contain the record, for example because its layout has no place for it.
    """
    rows = PromptVersion.objects.in_workspace(workspace).annotate(stored=Cast("lockfile", TextField()))
    name = f"{kind}:{key}@"
    for lockfile in rows.filter(stored__contains=f'"{name}').values_list("lockfile", flat=True).iterator():
        yield from (digest for part, digest in lockfile["parts"].items() if part.startswith(name))


def find_digests_containing(
    workspace: int, versions: Iterable[PromptVersion], texts: Iterable[str]
) -> set[str]:
    """Find contents of these versions that include one of the texts.

    These may originate from another record, e.g. a sentence that is assembled from several records.
    """
    needles = [text.encode() for text in texts]
    digests = {
        digest
        for version in versions
        for digest in (*list_content_digests(version.segments, version.tools), version.report)
    }
    contents = get_contents(workspace, digests)
    return {digest for digest, data in contents.items() if data and any(text in data for text in needles)}


def find_shared_digests(workspace: int, digests: set[str]) -> set[str]:
    """Return those of these digests that a version without any erased record uses.

    Such a version contains another record with the same text. Its content is kept until that record is erased
    too. The versions that contain an erased record are refused by their tombstones.
    """
    rows = PromptVersion.objects.in_workspace(workspace).annotate(stored=Cast("segments", TextField()))
    shared: set[str] = set()
    for chunk in split_in_chunks(sorted(digests)):
        condition = Q(tools__in=chunk)
        for digest in chunk:
            condition |= Q(stored__contains=digest)
        users = rows.filter(condition).values_list("segments", "tools").order_by("pk")
        for batch in split_in_chunks(users.iterator(chunk_size=CHUNK_SIZE)):
            records = [list_erasable_records(segments) for segments, _tools in batch]
            tombstones = find_tombstones(workspace, set().union(*records)).keys()
            for (segments, tools), keys in zip(batch, records, strict=True):
                if not keys & tombstones:
                    shared |= digests & list_content_digests(segments, tools)
    return shared


def lock_builds(workspace: int, agents: Iterable[int]) -> None:
    """Wait for builds of these agents, which may have loaded the text, and let no other one start.

    The order of the locks is that of an edit and of a request for a release: record, workspace, prompts.
    """
    lock_workspace(workspace)
    rows = AgentPrompt.objects.in_workspace(workspace).filter(agent__in=list(agents))
    lock_prompts(workspace, list(rows.order_by("pk").values_list("pk", flat=True)))
