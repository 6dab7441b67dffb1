"""Convert database rows to the canonical rows that hash chains and seals are computed from.

There is one function per table.
"""

from typing import Any, NamedTuple, Protocol

from prompts.models import AgentPrompt, LedgerBlock, PromptVersion
from prompts.proof.canonical import canonical_digest
from prompts.proof.hashed_rows import (
    LOCKFILE_DOMAIN,
    SEGMENTS_DOMAIN,
    SIZES_DOMAIN,
    SLOTS_DOMAIN,
    ExpiryRow,
    LabelMoveRow,
    LedgerBlockRow,
    LedgerRow,
    VersionRow,
)

# A model instance or a named tuple of its columns. Verification reads millions of rows as tuples, because
# creating model instances would be slow.
RowLike = Any


class PromptKey(NamedTuple):
    """The agent id and channel id of a prompt. Hashed rows contain these two instead of the prompt's id."""

    agent: int
    channel: int | None


class ColumnHasher(Protocol):
    """A function that computes the digest of a large column. `domain` names the column."""

    def __call__(self, domain: str, value: Any) -> str: ...


def get_prompt_key(prompt: AgentPrompt) -> PromptKey:
    return PromptKey(prompt.agent_id, prompt.channel_id)


def get_version_number(version: PromptVersion | None) -> int | None:
    return None if version is None else version.number


def build_version_row(
    version: RowLike, prompt_key: PromptKey | None = None, hash_column: ColumnHasher = canonical_digest
) -> VersionRow:
    agent, channel = prompt_key or get_prompt_key(version.prompt)
    sizes = {"characters": version.characters, "tokens": version.tokens, "sections": version.sizes}
    return VersionRow(
        workspace=version.workspace_id,
        agent=agent,
        channel=channel,
        number=version.number,
        digest=version.digest,
        segments=hash_column(SEGMENTS_DOMAIN, version.segments),
        text=version.text_digest,
        tools=version.tools,
        skill_files=version.skill_files,
        sizes=hash_column(SIZES_DOMAIN, sizes),
        lockfile=hash_column(LOCKFILE_DOMAIN, version.lockfile),
        report=version.report,
        layout=version.layout,
        compiler=version.compiler,
        causes=version.causes,
        author=version.author_label,
        message=version.message,
        at=version.created_at,
    )


def build_label_move_row(
    move: RowLike, prompt_key: PromptKey | None = None, numbers: tuple[int | None, int | None] | None = None
) -> LabelMoveRow:
    agent, channel = prompt_key or get_prompt_key(move.prompt)
    number, previous = numbers or (
        get_version_number(move.version),
        get_version_number(move.previous_version),
    )
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


def build_ledger_row(
    entry: RowLike,
    prompt_key: PromptKey | None = None,
    number: int | None = None,
    hash_column: ColumnHasher = canonical_digest,
) -> LedgerRow:
    agent, channel = prompt_key or get_prompt_key(entry.prompt)
    return LedgerRow(
        workspace=entry.workspace_id,
        id=entry.id,
        key=format_reader(entry.key_id, entry.user_id, entry.reader_label),
        agent=agent,
        channel=channel,
        label=entry.label,
        version=entry.version_id,
        number=entry.version.number if number is None else number,
        slots=hash_column(SLOTS_DOMAIN, entry.slots),
        served=entry.served_digest,
        size=entry.size,
        status=entry.status,
        request_id=entry.request_id,
        at=entry.at,
        skill=entry.skill,
    )


def format_reader(key_id: int | None, user_id: int | None, label: str) -> str:
    """Format the client of a fetch for the row's seal, for example `key:4 user:- Reception`.

    Key id and user id always appear; `-` means none. The label is the key's name or the user's email.
    """
    key, user = ("-" if number is None else number for number in (key_id, user_id))
    return f"key:{key} user:{user} {label}"


def build_block_row(block: RowLike) -> LedgerBlockRow:
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


def build_expiry_row(expiry: RowLike, block: LedgerBlock | int) -> ExpiryRow:
    return ExpiryRow(
        workspace=expiry.workspace_id,
        block=block if isinstance(block, int) else block.sequence,
        first_id=expiry.first_id,
        last_id=expiry.last_id,
        months=expiry.months,
        at=expiry.at,
    )
