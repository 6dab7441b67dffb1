"""Stored rows as the proof hashes them: one function per table."""

from typing import Any, NamedTuple, Protocol

from prompts.models import AgentPrompt, LedgerBlock, PromptVersion
from prompts.proof.canonical import digest
from prompts.proof.hashed_rows import (
    LOCKFILE,
    SEGMENTS,
    SIZES,
    SLOTS,
    LabelMoveRow,
    LedgerBlockRow,
    LedgerRow,
    RollOffRow,
    VersionRow,
)

# A model, or a named tuple of its columns: verification reads millions of rows and makes no models of them.
Columns = Any


class Line(NamedTuple):
    """The agent and channel of a prompt: what a row names by the prompt's id is hashed by these."""

    agent: int
    channel: int | None


class Hashing(Protocol):
    """How the long columns are digested."""

    def __call__(self, domain: str, value: Any) -> str: ...


def line_of(prompt: AgentPrompt) -> Line:
    return Line(prompt.agent_id, prompt.channel_id)


def number_of(version: PromptVersion | None) -> int | None:
    return None if version is None else version.number


def version_row(version: Columns, line: Line | None = None, hashing: Hashing = digest) -> VersionRow:
    agent, channel = line or line_of(version.prompt)
    sizes = {"characters": version.characters, "tokens": version.tokens, "sections": version.sizes}
    return VersionRow(
        workspace=version.workspace_id,
        agent=agent,
        channel=channel,
        number=version.number,
        digest=version.digest,
        segments=hashing(SEGMENTS, version.segments),
        text=version.text_digest,
        tools=version.tools,
        sizes=hashing(SIZES, sizes),
        lockfile=hashing(LOCKFILE, version.lockfile),
        report=version.report,
        layout=version.layout,
        compiler=version.compiler,
        causes=version.causes,
        author=version.author_label,
        message=version.message,
        at=version.created_at,
    )


def move_row(
    move: Columns, line: Line | None = None, numbers: tuple[int | None, int | None] | None = None
) -> LabelMoveRow:
    agent, channel = line or line_of(move.prompt)
    number, previous = numbers or (number_of(move.version), number_of(move.previous_version))
    return LabelMoveRow(
        workspace=move.workspace_id,
        agent=agent,
        channel=channel,
        sequence=move.sequence,
        label=move.label,
        version=move.version_id,
        number=number,
        previous_version=move.previous_version_id,
        previous_number=previous,
        reason=move.reason,
        note=move.note,
        release=move.release_id,
        author=move.author_label,
        at=move.at,
    )


def ledger_row(
    entry: Columns, line: Line | None = None, number: int | None = None, hashing: Hashing = digest
) -> LedgerRow:
    agent, channel = line or line_of(entry.prompt)
    return LedgerRow(
        workspace=entry.workspace_id,
        id=entry.id,
        key=reader_of(entry.key_id, entry.user_id, entry.reader_label),
        agent=agent,
        channel=channel,
        label=entry.label,
        version=entry.version_id,
        number=entry.version.number if number is None else number,
        slots=hashing(SLOTS, entry.slots),
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


def block_row(block: Columns) -> LedgerBlockRow:
    return LedgerBlockRow(
        workspace=block.workspace_id,
        sequence=block.sequence,
        first_id=block.first_id,
        last_id=block.last_id,
        count=block.count,
        rows=block.rows,
        first_at=block.first_at,
        last_at=block.last_at,
        at=block.at,
    )


def roll_off_row(note: Columns, block: LedgerBlock | int) -> RollOffRow:
    return RollOffRow(
        workspace=note.workspace_id,
        block=block if isinstance(block, int) else block.sequence,
        first_id=note.first_id,
        last_id=note.last_id,
        months=note.months,
        at=note.at,
    )
