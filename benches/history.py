"""Lays down a long, valid history quickly: versions and ledger rows as the product would write them."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from typing import Any

from django.db import connection, transaction
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
TABLE_SIZE = {
    "postgresql": "SELECT pg_total_relation_size(%s)",
    "sqlite": "SELECT sum(pgsize) FROM dbstat JOIN sqlite_schema USING (name) WHERE tbl_name = %s",
}
LISTS_SIZE = {
    "postgresql": "SELECT sum(pg_column_size(segments)) FROM prompts_promptversion WHERE id > %s",
    "sqlite": "SELECT sum(length(CAST(segments AS blob))) FROM prompts_promptversion WHERE id > %s",
}


def lengthen(workspace: Workspace, prompt: AgentPrompt, rows: int, versions: int) -> None:
    """Versions on every other prompt in turn, then calls of the given one, closed into blocks."""
    add_versions(workspace, prompt, versions)
    add_calls(workspace, prompt, rows)
    seal_workspace(workspace.pk)
    if connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            # All tables take longer than a page may on a busy machine.
            cursor.execute("SET LOCAL statement_timeout = 0")
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


def sizes(*tables: str) -> int:
    """Bytes of these tables with their indexes; without a name, of all that grow with versions."""
    return sum([int(answer(TABLE_SIZE[connection.vendor], table)) for table in tables or TABLES])


def segment_lists(after: int) -> tuple[int, int]:
    """Of the versions past this id, the lists of segments: their own bytes, and those of a table of them."""
    own = int(answer(LISTS_SIZE[connection.vendor], after))
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE bench_lists AS SELECT id, segments FROM prompts_promptversion WHERE id > %s",
            [after],
        )
        kept = sizes("bench_lists")
        cursor.execute("DROP TABLE bench_lists")
    return own, kept


def answer(question: str, value: int | str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(question, [value])
        return cursor.fetchone()[0]
