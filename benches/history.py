"""Generate a long, valid history quickly: versions and ledger rows as the product would write them."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from django.db import connection, transaction
from django.db.models import Model
from django.utils import timezone

from personas.models import Workspace
from prompts.evidence.ledger.blocks import seal_ledger
from prompts.models import AgentPrompt, LedgerEntry, PromptVersion
from prompts.proof_rows import build_ledger_row, build_version_row, format_reader, get_prompt_key

CHUNK = 2_000
# The values in which one row differs from the next.
RowValues = tuple[int | str | datetime, ...]
VERSION_COLUMNS = ("number", "previous_hash", "hash")
LEDGER_COLUMNS = ("reader_label", "request_id", "at", "seal")
JSON_ROWS = {
    "postgresql": "jsonb_array_elements(%s::jsonb) WITH ORDINALITY AS line (value, place)",
    "sqlite": "(SELECT value, key AS place FROM json_each(%s)) AS line",
}
JSON_COLUMN = {
    "postgresql": "CAST(line.value ->> {place} AS {kind})",
    "sqlite": "json_extract(line.value, '$[{place}]')",
}
VERSION_TABLES = (
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


def extend_history(workspace: Workspace, prompt: AgentPrompt, rows: int, versions: int) -> None:
    """Add versions to all other prompts and ledger rows to the given one, and seal the ledger into blocks."""
    add_versions(workspace, prompt, versions)
    add_ledger_rows(workspace, prompt, rows)
    seal_ledger(workspace.pk)
    if connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            # ANALYZE of all tables may exceed the statement timeout on a busy machine.
            cursor.execute("SET LOCAL statement_timeout = 0")
            cursor.execute("ANALYZE")


def add_versions(workspace: Workspace, excluded: AgentPrompt, count: int) -> None:
    prompts = list(
        AgentPrompt.objects.in_workspace(workspace).exclude(pk=excluded.pk).select_related("latest")
    )
    each = -(-count // len(prompts))
    for prompt in prompts:
        stored = get_latest_version(prompt)
        copy_row(stored, VERSION_COLUMNS, generate_versions(prompt, each))
        prompt.latest = PromptVersion.objects.in_workspace(workspace).get(
            prompt=prompt, number=prompt.last_number + each
        )
        prompt.last_number, prompt.last_hash = prompt.latest.number, prompt.latest.hash
        prompt.save()


def get_latest_version(prompt: AgentPrompt) -> PromptVersion:
    if prompt.latest is None:
        raise SystemExit("A prompt without a version was never handed out, and cannot be lengthened.")
    return prompt.latest


def generate_versions(prompt: AgentPrompt, count: int) -> Iterator[RowValues]:
    """Yield copies of the latest version, chained by hash."""
    version, number, previous = get_latest_version(prompt), prompt.last_number, prompt.last_hash
    row = build_version_row(version, get_prompt_key(prompt))
    for at in range(1, count + 1):
        hash_ = replace(row, number=number + at).hash(previous)
        yield number + at, previous, hash_
        previous = hash_


def add_ledger_rows(workspace: Workspace, prompt: AgentPrompt, count: int) -> None:
    version, started_at = get_latest_version(prompt), timezone.now() - timedelta(days=30)
    first = LedgerEntry(
        workspace_id=prompt.workspace_id,
        prompt=prompt,
        label="production",
        version=version,
        slots={},
        served_digest=version.text_digest,
        size=version.characters,
        status=200,
    )
    rows = generate_ledger_rows(prompt, first, started_at, count)
    for name, value in zip(LEDGER_COLUMNS, next(rows), strict=True):
        setattr(first, name, value)
    [stored] = LedgerEntry.objects.in_workspace(workspace).bulk_create([first])
    copy_row(stored, LEDGER_COLUMNS, rows)


def generate_ledger_rows(
    prompt: AgentPrompt, template: LedgerEntry, started_at: datetime, count: int
) -> Iterator[RowValues]:
    """Yield the values of ledger rows, one per second."""
    row = build_ledger_row(template, get_prompt_key(prompt))
    for number in range(count):
        reader, request_id, at = (
            f"bot {number % 40}",
            f"bench-{number}",
            started_at + timedelta(seconds=number),
        )
        ledger_row = replace(row, key=format_reader(None, None, reader), request_id=request_id, at=at)
        yield reader, request_id, at, ledger_row.seal()


def copy_row(stored: Model, names: Sequence[str], rows: Iterator[RowValues]) -> None:
    """Copy a stored row once per item of `rows`, which holds the values of these columns."""
    fields = [field for field in stored._meta.concrete_fields if not field.primary_key]
    values = [
        JSON_COLUMN[connection.vendor].format(place=names.index(field.column), kind=field.db_type(connection))
        if field.column in names
        else f"stored.{field.column}"
        for field in fields
    ]
    table, columns = stored._meta.db_table, ", ".join(str(field.column) for field in fields)
    statement = (
        f"INSERT INTO {table} ({columns}) SELECT {', '.join(values)} "  # noqa: S608  # names of our own columns
        f"FROM {table} AS stored, {JSON_ROWS[connection.vendor]} WHERE stored.id = %s ORDER BY line.place"
    )
    while chunk := list(islice(rows, CHUNK)):
        with connection.cursor() as cursor:
            cursor.execute(
                statement, [json.dumps([list(map(to_json_value, row)) for row in chunk]), stored.pk]
            )


def to_json_value(value: int | str | datetime) -> int | str:
    return str(connection.ops.adapt_datetimefield_value(value)) if isinstance(value, datetime) else value


def get_table_sizes(*tables: str) -> int:
    """Return the bytes of these tables with indexes; by default of all tables that grow with versions."""
    return sum([int(query_value(TABLE_SIZE[connection.vendor], table)) for table in tables or VERSION_TABLES])


def measure_segment_lists(after: int) -> tuple[int, int]:
    """Return the bytes of the segment lists of versions after this id: values, and a table of them."""
    value_bytes = int(query_value(LISTS_SIZE[connection.vendor], after))
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE bench_lists AS SELECT id, segments FROM prompts_promptversion WHERE id > %s",
            [after],
        )
        table_bytes = get_table_sizes("bench_lists")
        cursor.execute("DROP TABLE bench_lists")
    return value_bytes, table_bytes


def query_value(query: str, value: int | str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(query, [value])
        return cursor.fetchone()[0]
