"""The one statement of a fetch: it checks the key, resolves the label and writes the row, or does nothing."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from django.db import connection

from prompts.models import LATEST
from prompts.proof.rows import LedgerRow
from prompts.serving.asking import Bot, Reader, Wanted
from prompts.serving.resolving import Guess

COLUMNS = (
    *("workspace_id", "key_id", "user_id", "reader_label", "prompt_id", "label", "version_id"),
    *("slots", "served_digest", "size", "status", "request_id", "at", "seal"),
)
# Every value is one that the seal was made over; the joins let the row in only while all of it is true.
STATEMENT = """
INSERT INTO prompts_ledgerentry ({columns})
SELECT {values}
FROM {reader}
JOIN personas_agent a ON a.workspace_id = r.workspace_id AND a.slug = %(agent)s
JOIN personas_channel c ON c.workspace_id = r.workspace_id AND c.slug = %(channel)s
JOIN prompts_agentprompt p ON p.agent_id = a.id AND p.channel_id = c.id
{pointer}
WHERE {allowed}
AND (SELECT count(*) {erasures}) = %(erasures)s
AND NOT EXISTS (SELECT 1 {erasures} AND e.at > %(erased_at)s)
RETURNING id
"""
ERASURES = "FROM personas_erasure e WHERE e.workspace_id = r.workspace_id"
KEY = "personas_apikey r"
KEY_HOLDS = """
r.digest = %(digest)s AND r.revoked_at IS NULL AND r.expires_at > %(at)s
AND r.id = %(key_id)s AND r.workspace_id = %(workspace_id)s AND r.name = %(reader_label)s AND {same_scopes}
"""
MEMBER = "personas_membership r JOIN personas_user u ON u.id = r.user_id AND u.is_active"
MEMBER_HOLDS = "r.workspace_id = %(workspace_id)s AND r.user_id = %(user_id)s"
IN_USE = "AND p.is_live AND a.archived_at IS NULL AND c.archived_at IS NULL"
POINTERS = {
    "label": f"""{IN_USE}
JOIN prompts_promptlabel l ON l.prompt_id = p.id AND l.name = %(label_name)s AND l.version_id = %(version_id)s
""",
    "latest": f"{IN_USE} AND p.latest_id = %(version_id)s",
    "moment": "JOIN prompts_promptversion v ON v.prompt_id = p.id AND v.id = %(version_id)s",
}
SAME_SCOPES = {
    "postgresql": "r.scopes = %(scopes)s",
    "sqlite": "json(r.scopes) = json(%(scopes)s)",
}


class InsideTransaction(RuntimeError):
    """A prompt asked for in a transaction: it would be out before its row is there to stay."""


@cache
def statement(vendor: str, pointer: str, *, is_key: bool) -> str:
    allowed = KEY_HOLDS.format(same_scopes=SAME_SCOPES[vendor]) if is_key else MEMBER_HOLDS
    return STATEMENT.format(
        columns=", ".join(COLUMNS),
        values=", ".join(f"%({name})s" for name in COLUMNS),
        reader=KEY if is_key else MEMBER,
        pointer=POINTERS[pointer],
        allowed=allowed,
        erasures=ERASURES,
    )


def record(
    reader: Reader, wanted: Wanted, guess: Guess, row: LedgerRow, slots: Mapping[str, Any]
) -> int | None:
    """The id of the new row; None if any part of the guess does not hold, and then nothing was written."""
    refuse_inside_transaction()
    values = {
        "workspace_id": guess.workspace_id,
        "key_id": guess.key_id,
        "user_id": guess.user_id,
        "reader_label": guess.reader_label,
        "prompt_id": guess.prompt_id,
        "label": row.label,
        "version_id": row.version,
        "slots": connection.ops.adapt_json_value(slots, None),
        "served_digest": row.served,
        "size": row.size,
        "status": row.status,
        "request_id": row.request_id,
        "at": connection.ops.adapt_datetimefield_value(row.at),
        "seal": row.seal(),
        "agent": wanted.agent,
        "channel": wanted.channel,
        "label_name": wanted.label,
        "erasures": guess.erasures.number,
        "erased_at": connection.ops.adapt_datetimefield_value(guess.erasures.last_at),
        "digest": reader.digest if isinstance(reader, Bot) else "",
        "scopes": connection.ops.adapt_json_value(guess.scopes, None),
    }
    with connection.cursor() as cursor:
        cursor.execute(
            statement(connection.vendor, pointer_of(wanted), is_key=isinstance(reader, Bot)), values
        )
        # All rows are taken: SQLite ends the statement, and so commits, only when there are no more.
        written = cursor.fetchall()
    return int(written[0][0]) if written else None


def pointer_of(wanted: Wanted) -> str:
    if wanted.at is not None:
        return "moment"
    return LATEST if wanted.label == LATEST else "label"


def refuse_inside_transaction() -> None:
    blocks = connection.atomic_blocks
    # Tests run in a transaction of their own; Django asks the same way for its durable blocks.
    if blocks and not getattr(blocks[-1], "_from_testcase", False):
        raise InsideTransaction("A prompt is handed out outside of any transaction.")
