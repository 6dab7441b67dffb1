"""Erase a memory or user profile from every version: the text is deleted, hashes and numbers are kept."""

from collections.abc import Iterable, Iterator

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from core.db.write_ahead_log import truncate_write_ahead_log
from personas.actors import Actor
from personas.erasure.services import erase_contents, erase_record_text, list_personal_texts
from personas.models import Content, Erasure, Record, Workspace
from prompts.builds.services import rebuild_agents
from prompts.labels.moves import PlannedMove, move_labels
from prompts.labels.services import lock_prompts, save_prompts
from prompts.models import AgentPrompt, PromptLabel, PromptVersion
from prompts.provenance.usage import list_prompts_with_record, list_record_usages
from prompts.versions.segments import list_content_digests
from prompts.versions.selectors import get_contents


@transaction.atomic
def erase_record(record: Record, *, reason: str, by: Actor) -> Erasure:
    """Erase a record, its revisions and its text in all versions, in one transaction.

    Labels move away from versions that are no longer readable.
    """
    texts = list_personal_texts(record)
    kind, key, workspace = record.kind, record.pk, record.workspace_id
    erasure = erase_record_text(record, reason=reason, by=by)
    versions = list(iterate_versions_with_record(workspace, kind, key))
    agents = AgentPrompt.objects.in_workspace(workspace).filter(pk__in={row.prompt_id for row in versions})
    rebuild_agents(workspace, agents.values_list("agent_id", flat=True))
    move_labels_off_erased(workspace, versions, by=by)
    digests = set(iterate_record_digests(versions, kind, key)) | find_digests_containing(
        workspace, versions, texts
    )
    erasable = digests - list_digests_in_use(workspace)
    erase_contents(workspace, erasable)
    erasure.digests, erasure.versions = (
        sorted({*erasure.digests, *erasable}),
        sorted({*erasure.versions, *(row.pk for row in versions)}),
    )
    # Set the time even if the row exists from an earlier erasure: serving caches drop their texts when they
    # see a newer time.
    erasure.at = timezone.now()
    erasure.save(update_fields=["digests", "versions", "at"])
    # Robust: the erasure is committed by then, so an error here must not be reported as a failed erasure.
    transaction.on_commit(truncate_write_ahead_log, robust=True)
    return erasure


def iterate_versions_with_record(workspace: Workspace | int, kind: str, key: int) -> Iterator[PromptVersion]:
    prompts = list(list_prompts_with_record(workspace, kind, key))
    condition = Q()
    for usage in list_record_usages(workspace, kind, key, prompts):
        for versions in usage.ranges:
            upto = Q() if versions.last is None else Q(number__lte=versions.last)
            condition |= Q(prompt=usage.prompt, number__gte=versions.first) & upto
    if condition:
        yield from PromptVersion.objects.in_workspace(workspace).filter(condition).iterator(chunk_size=500)


def iterate_record_digests(versions: Iterable[PromptVersion], kind: str, key: int) -> Iterator[str]:
    """Yield the content digests of segments that originate from the record, and of its stored inputs.

    Every revision of the record is in the lockfile of the version that used it first.
    """
    for version in versions:
        lockfile_parts = version.lockfile["parts"].items()
        yield from (digest for name, digest in lockfile_parts if name.startswith(f"{kind}:{key}@"))
        for row in version.segments:
            origin = row.get("origin", {})
            if (origin.get("kind"), origin.get("id")) == (kind, str(key)):
                yield from (row[name] for name in ("content", "given") if name in row)


def find_digests_containing(
    workspace: int, versions: Iterable[PromptVersion], texts: Iterable[str]
) -> set[str]:
    """Find contents of these versions that include one of the texts.

    These may originate from another record, e.g. a sentence that is assembled from several records.
    """
    needles = [text.encode() for text in texts]
    digests = {
        digest for version in versions for digest in list_content_digests(version.segments, version.tools)
    }
    contents = get_contents(workspace, digests)
    return {digest for digest, data in contents.items() if data and any(text in data for text in needles)}


def list_digests_in_use(workspace: int) -> set[str]:
    """Return the digests of all contents that latest versions use.

    Call it after the rebuild: the erased record is no longer in the latest versions. If a digest is still
    used, another record has the same text, so the content must not be erased.
    """
    prompts = AgentPrompt.objects.in_workspace(workspace).filter(latest__isnull=False)
    latest = PromptVersion.objects.in_workspace(workspace).filter(pk__in=prompts.values("latest"))
    return {
        digest
        for segments, tools in latest.values_list("segments", "tools")
        for digest in list_content_digests(segments, tools)
    }


def move_labels_off_erased(workspace: int, versions: Iterable[PromptVersion], *, by: Actor) -> None:
    """Move labels of erased versions to the latest version, regardless of the release policy."""
    erased = {version.pk for version in versions}
    labels = PromptLabel.objects.in_workspace(workspace).filter(version__in=erased)
    pairs = list(labels.values_list("prompt_id", "name"))
    prompts = {row.pk: row for row in lock_prompts(workspace, sorted({prompt for prompt, _ in pairs}))}
    moves = [
        PlannedMove(prompts[prompt], name, prompts[prompt].latest, "erasure", by=by.label)
        for prompt, name in pairs
        if prompts[prompt].latest_id not in erased
    ]
    move_labels(workspace, moves, at=timezone.now())
    save_prompts(prompts.values())


def has_erased_content(version: PromptVersion) -> bool:
    """Return whether some text of the version was erased."""
    rows = Content.objects.in_workspace(version.workspace_id).filter(
        digest__in=list_content_digests(version.segments, version.tools), erased_at__isnull=False
    )
    return rows.exists()
