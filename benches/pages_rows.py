"""Bulk rows of the pages bench, as the product would write them."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import islice
from random import Random

from django.utils import timezone

from benches.source import SENTENCE
from personas.models import Agent, ApiKey, AuditEvent, Memory, MemoryStatus, Revision, Workspace
from prompts.models import PRODUCTION, LedgerEntry, PromptLabel, PromptVersion
from prompts.proof_rows import build_ledger_row, get_prompt_key

CHUNK = 2_000
# Most are active, some wait for review, some were superseded.
STATUSES = (*[MemoryStatus.ACTIVE] * 7, MemoryStatus.PROPOSED, MemoryStatus.PROPOSED, MemoryStatus.SUPERSEDED)
# One in this many is shared by all agents; few, because a shared memory is in every prompt.
SHARED_EVERY = 500


def add_memories(workspace: Workspace, agents: Sequence[Agent], count: int) -> None:
    """Create memories, each with its first revision and its audit event."""
    rows = [build_memory(workspace, agents, number) for number in range(count)]
    memories = Memory.objects.in_workspace(workspace).bulk_create(rows, batch_size=CHUNK)
    replaced = [row for row in memories if row.status == MemoryStatus.SUPERSEDED]
    active = [row for row in memories if row.status == MemoryStatus.ACTIVE]
    for row, successor in zip(replaced, active, strict=False):
        row.superseded_by = successor
    Memory.objects.in_workspace(workspace).bulk_update(replaced, ["superseded_by"], batch_size=CHUNK)
    Revision.objects.in_workspace(workspace).bulk_create(
        map(build_first_revision, memories), batch_size=CHUNK
    )
    AuditEvent.objects.in_workspace(workspace).bulk_create(map(build_audit_event, memories), batch_size=CHUNK)


def build_memory(workspace: Workspace, agents: Sequence[Agent], number: int) -> Memory:
    return Memory(
        workspace=workspace,
        text=f"Parcel {number} lies at counter {number % 7}. {SENTENCE}",
        agent=agents[number % len(agents)] if number % SHARED_EVERY else None,
        status=STATUSES[number // len(agents) % len(STATUSES)],
        source="The desk's handbook" if number % 3 else "",
        author_label="bench",
        revision=1,
    )


def build_first_revision(row: Memory) -> Revision:
    return Revision(
        workspace_id=row.workspace_id,
        kind=row.kind,
        object_id=row.pk,
        number=1,
        data=row.snapshot(),
        author_label="bench",
    )


def build_audit_event(row: Memory) -> AuditEvent:
    return AuditEvent(
        workspace_id=row.workspace_id,
        verb="created",
        kind=row.kind,
        object_id=row.pk,
        object_label=str(row)[:254],
        actor_label="bench",
        after=row.snapshot(),
    )


def add_day_of_fetches(workspace: Workspace, count: int) -> None:
    entries = generate_day_of_fetches(workspace, count)
    while chunk := list(islice(entries, CHUNK)):
        LedgerEntry.objects.in_workspace(workspace).bulk_create(chunk)


def get_first_versions(workspace: Workspace) -> dict[int, PromptVersion]:
    rows = PromptVersion.objects.in_workspace(workspace).filter(number=1)
    return {row.prompt_id: row for row in rows.defer("segments", "lockfile", "sizes")}


def generate_day_of_fetches(workspace: Workspace, count: int) -> Iterator[LedgerEntry]:
    """Yield fetches of production with all keys over the last day; few prompts get most of them."""
    labels = list(
        PromptLabel.objects.in_workspace(workspace)
        .filter(name=PRODUCTION)
        .select_related("version", "prompt__agent", "prompt__channel", "prompt__workspace")
        .defer("version__segments", "version__lockfile", "version__sizes")
        .order_by("pk")
    )
    keys = list(ApiKey.objects.in_workspace(workspace).order_by("pk"))
    prompt_keys = {label.prompt_id: get_prompt_key(label.prompt) for label in labels}
    first_version_by_prompt = get_first_versions(workspace)
    rng, started_at = Random(7), timezone.now() - timedelta(days=1)  # noqa: S311  # the same calls every time
    for number in range(count):
        label = labels[int(len(labels) * rng.random() ** 2)]
        key = keys[rng.randrange(len(keys))]
        # Some bots have not fetched the newest version yet.
        version = first_version_by_prompt[label.prompt_id] if number % 20 == 0 else label.version
        row = LedgerEntry(
            workspace_id=label.workspace_id,
            key=key,
            reader_label=key.name,
            prompt=label.prompt,
            label=PRODUCTION,
            version=version,
            slots={},
            served_digest=version.text_digest,
            size=version.characters,
            status=304 if number % 4 else 200,
            request_id=f"bench-{number}",
            at=started_at + timedelta(days=number / count),
        )
        row.seal = build_ledger_row(row, prompt_keys[label.prompt_id], version.number).seal()
        yield row
