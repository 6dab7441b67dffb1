"""Stored rows as the proof hashes them: one function per table."""

from typing import Any

from prompts.models import LabelMove, LedgerBlock, LedgerEntry, PromptVersion
from prompts.proof.canonical import digest
from prompts.proof.rows import (
    LOCKFILE,
    REPORT,
    SEGMENTS,
    SLOTS,
    LabelMoveRow,
    LedgerBlockRow,
    LedgerRow,
    VersionRow,
)


def version_row(version: PromptVersion) -> VersionRow:
    prompt = version.prompt
    facts: dict[str, Any] = {
        "tools": version.tools,
        "characters": version.characters,
        "tokens": version.tokens,
        "sizes": version.sizes,
        "report": version.report,
    }
    return VersionRow(
        workspace=version.workspace_id,
        agent=prompt.agent_id,
        channel=prompt.channel_id,
        number=version.number,
        digest=version.digest,
        segments=digest(SEGMENTS, version.segments),
        text=version.text_digest,
        lockfile=digest(LOCKFILE, version.lockfile),
        report=digest(REPORT, facts),
        layout=version.layout,
        compiler=version.compiler,
        cause={"causes": version.causes},
        author=version.author_label,
        message=version.message,
        at=version.created_at,
    )


def move_row(move: LabelMove) -> LabelMoveRow:
    prompt = move.prompt
    return LabelMoveRow(
        workspace=move.workspace_id,
        sequence=move.sequence,
        agent=prompt.agent_id,
        channel=prompt.channel_id,
        label=move.label,
        version=move.version_id,
        previous_version=move.previous_version_id,
        reason=f"{move.reason}: {move.note}" if move.note else move.reason,
        release=move.release_id,
        author=move.author_label,
        at=move.at,
    )


def ledger_row(entry: LedgerEntry) -> LedgerRow:
    prompt = entry.prompt
    return LedgerRow(
        workspace=entry.workspace_id,
        id=entry.pk,
        key=reader_of(entry.key_id, entry.user_id, entry.reader_label),
        agent=prompt.agent_id,
        channel=prompt.channel_id,
        label=entry.label,
        version=entry.version_id,
        number=entry.version.number,
        slots=digest(SLOTS, entry.slots),
        served=entry.served_digest,
        size=entry.size,
        status=entry.status,
        request_id=entry.request_id,
        at=entry.at,
    )


def reader_of(key_id: int | None, user_id: int | None, label: str) -> str:
    """Key and person as the seal covers them, both columns always: `key:4 user:- Reception`."""
    key, user = ("-" if number is None else number for number in (key_id, user_id))
    return f"key:{key} user:{user} {label}"


def block_row(block: LedgerBlock) -> LedgerBlockRow:
    return LedgerBlockRow(
        workspace=block.workspace_id,
        sequence=block.sequence,
        first_id=block.first_id,
        last_id=block.last_id,
        count=block.count,
        rows=block.rows,
        at=block.at,
    )
