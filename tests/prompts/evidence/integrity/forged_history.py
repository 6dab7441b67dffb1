"""Tools of an attacker with database access who can recompute every hash."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.test import override_settings

from prompts.evidence.integrity.checkpoint_signer import sign_checkpoint
from prompts.models import AgentPrompt, LabelMove, LedgerBlock, LedgerEntry, PromptVersion
from prompts.proof.hashed_rows import ledger_rows_digest
from prompts.proof.signing_keys import PrivateKey, dump_private_key
from prompts.proof_rows import build_block_row, build_label_move_row, build_ledger_row, build_version_row
from tests.prompts.evidence.integrity.history_stage import History

APPEND_ONLY_TABLES = (
    "prompts_promptversion",
    "prompts_versionpart",
    "prompts_labelmove",
    "prompts_ledgerentry",
    "prompts_ledgerblock",
    "prompts_ledgerexpiry",
    "prompts_checkpoint",
    "prompts_signingkey",
)


@contextmanager
def unguarded() -> Iterator[None]:
    """Disable the append-only triggers; roll back everything afterwards."""
    point = transaction.savepoint()
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL session_replication_role = replica")
        else:
            cursor.execute("SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'prompts%'")
            for (name,) in cursor.fetchall():
                cursor.execute(f"DROP TRIGGER {name}")
    try:
        yield
    finally:
        transaction.savepoint_rollback(point)


def by_hand(statement: str, *values: Any) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return int(cursor.rowcount)


def ids_in(table: str) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT id FROM {table} ORDER BY id")  # noqa: S608  # our own names
        return [number for (number,) in cursor.fetchall()]


def delete(table: str, number: int) -> None:
    assert by_hand(f"DELETE FROM {table} WHERE id = %s", number) == 1  # noqa: S608  # our own names


def insert_copy(table: str, source_id: int, /, **changes: Any) -> None:
    """Insert a copy of a row with some columns changed."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table} WHERE id = %s", [source_id])  # noqa: S608  # our own names
        names = [column[0] for column in cursor.description]
        values = dict(zip(names, cursor.fetchone(), strict=True)) | changes
        column_list = ", ".join(f'"{name}"' for name in values)
        placeholders = ", ".join(["%s"] * len(values))
        cursor.execute(f"INSERT INTO {table} ({column_list}) VALUES ({placeholders})", list(values.values()))  # noqa: S608


def exchange(table: str, columns: tuple[str, ...], one: int, other: int) -> None:
    """Swap the values of these columns between two rows."""
    column_list = ", ".join(f'"{name}"' for name in columns)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {column_list} FROM {table} WHERE id IN (%s, %s) ORDER BY id",  # noqa: S608  # our own names
            sorted([one, other]),
        )
        before, after = cursor.fetchall()
    assignments = ", ".join(f'"{name}" = %s' for name in columns)
    for values, number in ((after, min(one, other)), (before, max(one, other))):
        by_hand(f"UPDATE {table} SET {assignments} WHERE id = %s", *values, number)  # noqa: S608


# --- recomputed hashes ---------------------------------------------------------------------------------


def rehash_versions(history: History) -> None:
    """Recompute every version chain and the recorded ends in the prompts."""
    for prompt in AgentPrompt.objects.in_workspace(history.workspace):
        head = ""
        rows = PromptVersion.objects.in_workspace(history.workspace).filter(prompt=prompt)
        for row in rows.order_by("number").select_related("prompt"):
            hashed = build_version_row(row).hash(head)
            rows.filter(pk=row.pk).update(previous_hash=head, hash=hashed)
            head = hashed
        AgentPrompt.objects.in_workspace(history.workspace).filter(pk=prompt.pk).update(last_hash=head)


def rehash_moves(history: History) -> None:
    for prompt in AgentPrompt.objects.in_workspace(history.workspace):
        head = ""
        rows = LabelMove.objects.in_workspace(history.workspace).filter(prompt=prompt)
        for row in rows.order_by("sequence").select_related("prompt", "version", "previous_version"):
            hashed = build_label_move_row(row).hash(head)
            rows.filter(pk=row.pk).update(previous_hash=head, hash=hashed)
            head = hashed
        AgentPrompt.objects.in_workspace(history.workspace).filter(pk=prompt.pk).update(last_move_hash=head)


def reseal_ledger(history: History) -> None:
    """Recompute the seals and the blocks over them; an expired block keeps the digest of its rows."""
    entries = LedgerEntry.objects.in_workspace(history.workspace)
    for entry in entries.select_related("prompt", "version"):
        entries.filter(pk=entry.pk).update(seal=build_ledger_row(entry).seal())
    blocks, head = LedgerBlock.objects.in_workspace(history.workspace), ""
    for block in blocks.order_by("sequence"):
        inside = entries.filter(pk__gte=block.first_id, pk__lte=block.last_id).order_by("pk")
        pairs = list(inside.values_list("pk", "seal"))
        block.rows = ledger_rows_digest(pairs) if pairs else block.rows
        hashed = build_block_row(block).hash(head)
        blocks.filter(pk=block.pk).update(rows=block.rows, previous_hash=head, hash=hashed)
        head = hashed


def rewrite_everything(history: History, key: PrivateKey) -> None:
    """Rewrite all rows with their hashes, and replace checkpoints, keys and files by ones of this key.

    Call it inside `unguarded()`.
    """
    by_hand("UPDATE prompts_promptversion SET message = 'Never said'")
    by_hand("UPDATE prompts_ledgerentry SET reader_label = 'Nobody'")
    rehash_versions(history)
    rehash_moves(history)
    reseal_ledger(history)
    by_hand("DELETE FROM prompts_checkpoint")
    by_hand("DELETE FROM prompts_signingkey")
    for path in Path(settings.DRAMATIS_CHECKPOINT_DIR).iterdir():
        path.unlink()
    with override_settings(DRAMATIS_SIGNING_KEY=dump_private_key(key).decode()):
        assert sign_checkpoint(history.workspace.pk) is not None


def cut_tail(history: History) -> None:
    """Delete the newest version of a prompt with all references, and update the prompt to match."""
    prompt = history.prompt()
    previous, last = prompt.versions.order_by("-number")[1], prompt.latest
    assert last is not None
    for table, column in (
        ("prompts_ledgerentry", "version_id"),
        ("prompts_versionpart", "version_id"),
        ("prompts_labelmove", "version_id"),
    ):
        by_hand(f"DELETE FROM {table} WHERE {column} = %s", last.pk)  # noqa: S608  # our own names
    delete("prompts_promptversion", last.pk)
    move = (
        LabelMove.objects.in_workspace(history.workspace).filter(prompt=prompt).order_by("-sequence").first()
    )
    assert move is not None
    AgentPrompt.unscoped.filter(pk=prompt.pk).update(
        last_number=previous.number,
        last_hash=previous.hash,
        latest=previous,
        last_move=move.sequence,
        last_move_hash=move.hash,
    )
    by_hand(
        "UPDATE prompts_promptlabel SET version_id = %s WHERE prompt_id = %s AND name = %s",
        *(move.version_id, prompt.pk, move.label),
    )
