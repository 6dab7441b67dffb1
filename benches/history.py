"""Lays down a long, valid history quickly: versions and ledger rows as the product would write them."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import islice

from django.db import connection
from django.utils import timezone

from personas.models import Workspace
from prompts.models import AgentPrompt, LedgerEntry, PromptVersion
from prompts.proving import ledger_row, line_of, version_row
from prompts.services.sealing import seal_workspace

CHUNK = 2_000
TABLES = (
    "prompts_promptversion",
    "prompts_versionpart",
    "prompts_labelmove",
    "personas_content",
)


def lengthen(workspace: Workspace, prompt: AgentPrompt, rows: int, versions: int) -> None:
    """Versions on every other prompt in turn, then calls of the given one, closed into blocks."""
    add_versions(workspace, prompt, versions)
    add_calls(workspace, prompt, rows)
    seal_workspace(workspace.pk)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")


def add_versions(workspace: Workspace, spared: AgentPrompt, count: int) -> None:
    prompts = list(AgentPrompt.objects.in_workspace(workspace).exclude(pk=spared.pk).select_related("latest"))
    each = -(-count // len(prompts))
    for prompt in prompts:
        made = list(next_versions(prompt, each))
        PromptVersion.objects.in_workspace(workspace).bulk_create(made, batch_size=500)
        prompt.last_number, prompt.last_hash, prompt.latest = made[-1].number, made[-1].hash, made[-1]
        prompt.save()


def next_versions(prompt: AgentPrompt, count: int) -> Iterator[PromptVersion]:
    """The latest again and again, each in its place of the chain."""
    latest = prompt.latest
    if latest is None:
        raise SystemExit("A prompt without a version cannot be lengthened.")
    number, previous = prompt.last_number, prompt.last_hash
    columns = [field.attname for field in PromptVersion._meta.concrete_fields if not field.primary_key]
    told = {name: getattr(latest, name) for name in columns}
    for at in range(1, count + 1):
        version = PromptVersion(**told)
        version.prompt = prompt
        version.number, version.previous_hash = number + at, previous
        version.hash = previous = version_row(version).hash(previous)
        yield version


def add_calls(workspace: Workspace, prompt: AgentPrompt, count: int) -> None:
    calls = call_rows(prompt, count)
    while chunk := list(islice(calls, CHUNK)):
        LedgerEntry.objects.in_workspace(workspace).bulk_create(chunk)


def call_rows(prompt: AgentPrompt, count: int) -> Iterator[LedgerEntry]:
    version, line = prompt.latest, line_of(prompt)
    if version is None:
        raise SystemExit("A prompt without a version was never handed out.")
    began = timezone.now() - timedelta(days=30)
    for number in range(count):
        row = LedgerEntry(
            workspace_id=prompt.workspace_id,
            reader_label=f"bot {number % 40}",
            prompt=prompt,
            label="production",
            version=version,
            slots={},
            served_digest=version.text_digest,
            size=version.characters,
            status=200,
            request_id=f"bench-{number}",
            at=began + timedelta(seconds=number),
        )
        row.seal = ledger_row(row, line, version.number).seal()
        yield row


def sizes() -> int:
    """Bytes of the tables that grow with versions, without the segment lists."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            total = 0
            for table in TABLES:
                cursor.execute("SELECT pg_total_relation_size(%s)", [table])
                total += cursor.fetchone()[0]
            cursor.execute("SELECT coalesce(sum(pg_column_size(segments)), 0) FROM prompts_promptversion")
            return int(total - cursor.fetchone()[0])
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        cursor.execute("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")
        total = cursor.fetchone()[0]
        cursor.execute("SELECT coalesce(sum(length(segments)), 0) FROM prompts_promptversion")
        return int(total - cursor.fetchone()[0])
