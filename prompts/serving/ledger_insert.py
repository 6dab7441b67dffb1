"""The one statement of a fetch: it checks the key, resolves the label and writes the row, or does nothing."""

from functools import cache
from typing import NamedTuple

from django.db import connection

from prompts.models import LATEST
from prompts.proof.canonical import encode_json
from prompts.proof.hashed_rows import LedgerRow
from prompts.serving.ledger_writer import write_ledger_row
from prompts.serving.request import Client, KeyClient, PromptRequest
from prompts.serving.resolve import Resolution, format_db_timestamp

# What is stored, and what PostgreSQL calls its kind.
STORED_COLUMNS = {
    "workspace_id": "bigint",
    "key_id": "bigint",
    "user_id": "bigint",
    "reader_label": "text",
    "prompt_id": "bigint",
    "label": "text",
    "version_id": "bigint",
    "slots": "jsonb",
    "served_digest": "text",
    "size": "integer",
    "status": "smallint",
    "request_id": "text",
    "at": "timestamptz",
    "seal": "text",
}
# What else is held against the record.
CHECKED_COLUMNS = {
    "agent_id": "bigint",
    "agent": "text",
    "channel_id": "bigint",
    "channel": "text",
    "label_name": "text",
    "erasures": "bigint",
    "erased_at": "timestamptz",
    "digest": "text",
    "scopes": "jsonb",
}
# Every value is one that a seal was made over; the joins let a row in only while all of it is true. Fetches
# that wait for the same connection go in one statement: each is judged by itself, and known by its seal.
INSERT_TEMPLATE = """
INSERT INTO prompts_ledgerentry ({columns})
SELECT {values}
FROM {drafts}
JOIN {reader}
JOIN personas_agent a ON a.id = d.agent_id AND a.workspace_id = r.workspace_id AND a.slug = d.agent
JOIN personas_channel c ON c.id = d.channel_id AND c.workspace_id = r.workspace_id AND c.slug = d.channel
JOIN prompts_agentprompt p ON p.id = d.prompt_id AND p.agent_id = a.id AND p.channel_id = c.id
{pointer}
WHERE (SELECT count(*) {erasures}) = d.erasures
AND NOT EXISTS (SELECT 1 {erasures} AND e.at > d.erased_at)
RETURNING id, seal
"""
ERASURES_SQL = "FROM personas_erasure e WHERE e.workspace_id = r.workspace_id"
# A key that acts for a person is worth no more than that person's membership.
KEY_JOIN = """personas_apikey r ON
r.digest = d.digest AND r.revoked_at IS NULL AND r.expires_at > d.at
AND r.id = d.key_id AND r.workspace_id = d.workspace_id AND r.name = d.reader_label AND {same_scopes}
AND (r.kind = 'bot' OR EXISTS (
SELECT 1 FROM personas_membership m JOIN personas_user u ON u.id = m.user_id AND u.is_active
WHERE m.workspace_id = r.workspace_id AND m.user_id = r.created_by_id))
"""
MEMBER_JOIN = """personas_membership r ON r.workspace_id = d.workspace_id AND r.user_id = d.user_id
JOIN personas_user u ON u.id = r.user_id AND u.is_active"""
IN_USE_CONDITION = "AND p.is_live AND a.archived_at IS NULL AND c.archived_at IS NULL"
POINTER_JOINS = {
    "label": f"""{IN_USE_CONDITION}
JOIN prompts_promptlabel l ON l.prompt_id = p.id AND l.name = d.label_name AND l.version_id = d.version_id
""",
    "latest": f"{IN_USE_CONDITION} AND p.latest_id = d.version_id",
    "moment": "JOIN prompts_promptversion v ON v.prompt_id = p.id AND v.id = d.version_id",
}
SCOPES_CONDITIONS = {"postgresql": "r.scopes = d.scopes", "sqlite": "json(r.scopes) = json(d.scopes)"}


class InsideTransaction(RuntimeError):
    """A prompt asked for in a transaction: it would be out before its row is there to stay."""


class LedgerValues(NamedTuple):
    """What was handed out, beside the row: as the seal covers it, and as it is stored."""

    row: LedgerRow
    slots: str


@cache
def build_insert_sql(vendor: str, pointer: str, *, is_key: bool) -> str:
    """With one value to be put in: a JSON list of drafts."""
    return INSERT_TEMPLATE.format(
        columns=", ".join(STORED_COLUMNS),
        values=", ".join(f"d.{name}" for name in STORED_COLUMNS),
        drafts=build_drafts_sql(vendor),
        reader=KEY_JOIN.format(same_scopes=SCOPES_CONDITIONS[vendor]) if is_key else MEMBER_JOIN,
        pointer=POINTER_JOINS[pointer],
        erasures=ERASURES_SQL,
    )


def build_drafts_sql(vendor: str) -> str:
    """The list as rows of a table named d."""
    kinds = STORED_COLUMNS | CHECKED_COLUMNS
    if vendor == "postgresql":
        return f"json_to_recordset(%s::json) AS d({', '.join(f'{name} {kinds[name]}' for name in kinds)})"
    # One arrow gives JSON, two give what it says.
    taken = [f"value {'->' if kinds[name] == 'jsonb' else '->>'} '{name}' AS {name}" for name in kinds]
    return f"(SELECT {', '.join(taken)} FROM json_each(%s)) d"  # noqa: S608  # our own names


def insert_ledger_row(
    reader: Client, wanted: PromptRequest, guess: Resolution, facts: LedgerValues
) -> int | None:
    """The id of the new row; None if any part of the guess does not hold, and then nothing was written."""
    check_outside_transaction()
    sql = build_insert_sql(connection.vendor, get_pointer_kind(wanted), is_key=isinstance(reader, KeyClient))
    row, seal = facts.row, facts.row.seal()
    draft = (
        f'{{{guess.as_json},"label":{encode_json(row.label)},"slots":{facts.slots},'
        f'"served_digest":"{row.served}","size":{row.size},"status":{row.status},'
        f'"request_id":{encode_json(row.request_id)},"at":"{format_db_timestamp(row.at)}","seal":"{seal}"}}'
    )
    return write_ledger_row(sql, draft, seal)


def get_pointer_kind(wanted: PromptRequest) -> str:
    if wanted.at is not None:
        return "moment"
    return LATEST if wanted.label == LATEST else "label"


def check_outside_transaction() -> None:
    blocks = connection.atomic_blocks
    # Tests run in a transaction of their own; Django asks the same way for its durable blocks.
    if blocks and not getattr(blocks[-1], "_from_testcase", False):
        raise InsideTransaction("A prompt is handed out outside of any transaction.")
