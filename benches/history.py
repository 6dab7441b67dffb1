"""Lays down a long, valid history quickly: versions and ledger rows as the product would write them."""

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
from prompts.hashed_rows import build_ledger_row, build_version_row, format_reader, get_prompt_key
from prompts.ledger.blocks import seal_ledger
from prompts.models import AgentPrompt, LedgerEntry, PromptVersion

CHUNK = 2_000
# What tells one row from the next.
Line = tuple[int | str | datetime, ...]
VERSION = ("number", "previous_hash", "hash")
CALL = ("reader_label", "request_id", "at", "seal")
LINES = {
    "postgresql": "jsonb_array_elements(%s::jsonb) WITH ORDINALITY AS line (value, place)",
    "sqlite": "(SELECT value, key AS place FROM json_each(%s)) AS line",
}
LINE = {
    "postgresql": "CAST(line.value ->> {place} AS {kind})",
    "sqlite": "json_extract(line.value, '$[{place}]')",
}
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
    seal_ledger(workspace.pk)
    if connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            # All tables take longer than a page may on a busy machine.
            cursor.execute("SET LOCAL statement_timeout = 0")
            cursor.execute("ANALYZE")


def add_versions(workspace: Workspace, spared: AgentPrompt, count: int) -> None:
    prompts = list(AgentPrompt.objects.in_workspace(workspace).exclude(pk=spared.pk).select_related("latest"))
    each = -(-count // len(prompts))
    for prompt in prompts:
        stored = latest_of(prompt)
        repeat(stored, VERSION, next_versions(prompt, each))
        prompt.latest = PromptVersion.objects.in_workspace(workspace).get(
            prompt=prompt, number=prompt.last_number + each
        )
        prompt.last_number, prompt.last_hash = prompt.latest.number, prompt.latest.hash
        prompt.save()


def latest_of(prompt: AgentPrompt) -> PromptVersion:
    if prompt.latest is None:
        raise SystemExit("A prompt without a version was never handed out, and cannot be lengthened.")
    return prompt.latest


def next_versions(prompt: AgentPrompt, count: int) -> Iterator[Line]:
    """The latest again and again, each in its place of the chain."""
    version, number, previous = latest_of(prompt), prompt.last_number, prompt.last_hash
    row = build_version_row(version, get_prompt_key(prompt))
    for at in range(1, count + 1):
        made = replace(row, number=number + at).hash(previous)
        yield number + at, previous, made
        previous = made


def add_calls(workspace: Workspace, prompt: AgentPrompt, count: int) -> None:
    version, began = latest_of(prompt), timezone.now() - timedelta(days=30)
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
    calls = call_rows(prompt, first, began, count)
    for name, value in zip(CALL, next(calls), strict=True):
        setattr(first, name, value)
    [stored] = LedgerEntry.objects.in_workspace(workspace).bulk_create([first])
    repeat(stored, CALL, calls)


def call_rows(prompt: AgentPrompt, like: LedgerEntry, began: datetime, count: int) -> Iterator[Line]:
    """Such calls, one in every second."""
    row = build_ledger_row(like, get_prompt_key(prompt))
    for number in range(count):
        reader, request_id, at = f"bot {number % 40}", f"bench-{number}", began + timedelta(seconds=number)
        made = replace(row, key=format_reader(None, None, reader), request_id=request_id, at=at)
        yield reader, request_id, at, made.seal()


def repeat(stored: Model, names: Sequence[str], lines: Iterator[Line]) -> None:
    """Such a row for each line, with these columns from there; the rest the database copies by itself."""
    fields = [field for field in stored._meta.concrete_fields if not field.primary_key]
    taken = [
        LINE[connection.vendor].format(place=names.index(field.column), kind=field.db_type(connection))
        if field.column in names
        else f"stored.{field.column}"
        for field in fields
    ]
    table, columns = stored._meta.db_table, ", ".join(str(field.column) for field in fields)
    question = (
        f"INSERT INTO {table} ({columns}) SELECT {', '.join(taken)} "  # noqa: S608  # names of our own columns
        f"FROM {table} AS stored, {LINES[connection.vendor]} WHERE stored.id = %s ORDER BY line.place"
    )
    while chunk := list(islice(lines, CHUNK)):
        with connection.cursor() as cursor:
            cursor.execute(question, [json.dumps([list(map(written, line)) for line in chunk]), stored.pk])


def written(value: int | str | datetime) -> int | str:
    return str(connection.ops.adapt_datetimefield_value(value)) if isinstance(value, datetime) else value


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
