"""The INSERT statement of the ledger.

It joins the current rows of key, agent, channel, prompt and label. A ledger row is written only if these
still match the resolved request, if no content of the workspace was erased meanwhile, and if the time of the
row is that of the database.
"""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections

from prompts.models import LATEST
from prompts.proof.canonical import encode_json
from prompts.proof.hashed_rows import LedgerRow
from prompts.serving.ledger_writer import PendingRow, write_ledger_row
from prompts.serving.request import Client, KeyClient, PromptRequest, Resolution

# Columns of the ledger table and their PostgreSQL types.
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
    "traceparent": "text",
    "skill": "text",
}
# Values that are not stored, but compared with the joined rows, and their PostgreSQL types.
CHECKED_COLUMNS = {
    "agent_id": "bigint",
    "agent": "text",
    "channel_id": "bigint",
    "channel": "text",
    "label_name": "text",
    "report": "text",
    "release_policy": "text",
    "erasures": "bigint",
    "digest": "text",
    "scopes": "jsonb",
}

# The function for distributed tables (project/distribution/fetch_function.py).
FETCH_FUNCTION = "record_fetch"


class TableCheck(NamedTuple):
    """A condition of the INSERT: a row of this table must exist.

    The condition compares one row of the table with the draft row `d`. The workspace is compared too.
    """

    table: str
    alias: str
    condition: str

    @property
    def join(self) -> str:
        workspace = f"{self.alias}.workspace_id = r.workspace_id"
        return f"JOIN {self.table} {self.alias} ON {workspace} AND {self.condition}"


class PointerChecks(NamedTuple):
    """The conditions for one way to find a version."""

    # Further conditions on the rows of agent, channel and prompt, by alias.
    conditions: dict[str, str]
    table: TableCheck | None = None


# These definitions are used by the INSERT below and by the function of a distributed database
# (project/distribution/fetch_function.py).
COMMON_CHECKS = (
    TableCheck("personas_agent", "a", "a.id = d.agent_id AND a.slug = d.agent"),
    TableCheck("personas_channel", "c", "c.id = d.channel_id AND c.slug = d.channel"),
    TableCheck(
        "prompts_agentprompt",
        "p",
        "p.id = d.prompt_id AND p.agent_id = d.agent_id AND p.channel_id = d.channel_id",
    ),
)
# The report is compared so that the response contains the current warnings.
IN_USE_CONDITIONS = {
    "a": "a.archived_at IS NULL",
    "c": "c.archived_at IS NULL",
    "p": "p.is_active AND p.report = d.report",
}
POINTER_CHECKS = {
    "label": PointerChecks(
        IN_USE_CONDITIONS,
        TableCheck(
            "prompts_promptlabel",
            "l",
            "l.prompt_id = d.prompt_id AND l.name = d.label_name AND l.version_id = d.version_id",
        ),
    ),
    # Whether a bot key may fetch the latest version depends on the release policy.
    "latest": PointerChecks(
        IN_USE_CONDITIONS
        | {
            "a": f"{IN_USE_CONDITIONS['a']} AND a.release_policy = d.release_policy",
            "p": f"{IN_USE_CONDITIONS['p']} AND p.latest_id = d.version_id",
        }
    ),
    "past": PointerChecks(
        {}, TableCheck("prompts_promptversion", "v", "v.prompt_id = d.prompt_id AND v.id = d.version_id")
    ),
}
# Keys other than bot keys act for their creator, and are valid only while the creator is an active member.
KEY_CONDITION = """r.digest = d.digest AND r.revoked_at IS NULL AND r.expires_at > d.at
AND r.id = d.key_id AND r.workspace_id = d.workspace_id AND r.name = d.reader_label AND {same_scopes}"""
BOT_CONDITION = "r.kind = 'bot'"
CREATOR_CONDITION = """EXISTS (
SELECT 1 FROM personas_membership m JOIN personas_user u ON u.id = m.user_id AND u.is_active
WHERE m.workspace_id = r.workspace_id AND m.user_id = r.created_by_id)"""
KEY_JOIN = f"personas_apikey r ON {KEY_CONDITION} AND ({BOT_CONDITION} OR {CREATOR_CONDITION})"
MEMBER_JOIN = """personas_membership r ON r.workspace_id = d.workspace_id AND r.user_id = d.user_id
JOIN personas_user u ON u.id = r.user_id AND u.is_active"""
# One lookup by an index, however many erasures there are. The counter changes with the commit of an
# erasure, so a text that was loaded before is not served after it. Without erasures there is no counter.
ERASURES_CONDITION = """coalesce((
SELECT e.number FROM personas_erasurecounter e WHERE e.workspace_id = {workspace}), 0) = d.erasures"""
# The time in a row comes from the clock of the web server, because the seal is computed from it. With SQLite,
# that is also the clock of the database.
CLOCK_CONDITION = "abs(extract(epoch FROM d.at - statement_timestamp())) <= {max_skew}"
SCOPES_CONDITIONS = {"postgresql": "r.scopes = d.scopes", "sqlite": "json(r.scopes) = json(d.scopes)"}
# One statement writes the rows of several fetches. Each row is checked on its own: a row whose joins find
# nothing is not written. The seal, a digest of the stored values, tells which rows were written.
INSERT_TEMPLATE = """
INSERT INTO prompts_ledgerentry ({columns})
SELECT {values}
FROM {drafts}
JOIN {reader} {clock}
{checks}
WHERE {erasures}
RETURNING id, seal
"""


class InsideTransaction(RuntimeError):
    """A prompt was requested inside a transaction.

    This is a programming error: the prompt would be served before its ledger row is committed.
    """


class LedgerValues(NamedTuple):
    """The values of a new ledger row: the row that the seal is computed from, and the slots as JSON.

    The row itself contains only a digest of the slots. The seal does not cover `traceparent`.
    """

    row: LedgerRow
    slots: str
    # Validated, so it needs no JSON escaping. Empty if the client sent none.
    traceparent: str = ""


@cache
def build_insert_sql(vendor: str, pointer: str, *, is_key: bool, max_skew: int = 0) -> str:
    """Build the INSERT statement. Its only parameter is a JSON list of draft rows.

    `pointer` names how the version was found: by a label, by `latest`, or for a time in the past. `max_skew`
    is how many seconds the time of a row may differ from the clock of the database; 0 means no limit.
    """
    is_clock_checked = max_skew and vendor == "postgresql"
    return INSERT_TEMPLATE.format(
        columns=", ".join(STORED_COLUMNS),
        values=", ".join(f"d.{name}" for name in STORED_COLUMNS),
        drafts=build_drafts_sql(vendor),
        reader=KEY_JOIN.format(same_scopes=SCOPES_CONDITIONS[vendor]) if is_key else MEMBER_JOIN,
        clock=f"AND {CLOCK_CONDITION.format(max_skew=max_skew)}" if is_clock_checked else "",
        checks="\n".join(check.join for check in list_table_checks(pointer)),
        erasures=ERASURES_CONDITION.format(workspace="r.workspace_id"),
    )


@cache
def build_fetch_call(pointer: str, *, is_key: bool, max_skew: int = 0) -> str:
    """Build the call of the function for distributed tables. Parameters: the workspace and the draft rows."""
    flag = "true" if is_key else "false"
    return f"SELECT ledger_id, ledger_seal FROM {FETCH_FUNCTION}($1, '{pointer}', {flag}, {max_skew}, $2)"  # noqa: S608  # our own names


def list_table_checks(pointer: str) -> list[TableCheck]:
    """Return the conditions for a pointer, one for each table."""
    checks = POINTER_CHECKS[pointer]
    common = [
        check._replace(condition=f"{check.condition} AND {checks.conditions[check.alias]}")
        if check.alias in checks.conditions
        else check
        for check in COMMON_CHECKS
    ]
    return [*common, checks.table] if checks.table else common


def build_drafts_sql(vendor: str) -> str:
    """Build the SQL that turns the JSON list of draft rows into a table with the alias d."""
    types = STORED_COLUMNS | CHECKED_COLUMNS
    if vendor == "postgresql":
        return f"json_to_recordset(%s::json) AS d({', '.join(f'{name} {types[name]}' for name in types)})"
    # The operator -> returns JSON, ->> the plain value.
    columns = [f"value {'->' if types[name] == 'jsonb' else '->>'} '{name}' AS {name}" for name in types]
    return f"(SELECT {', '.join(columns)} FROM json_each(%s)) d"  # noqa: S608  # our own names


def insert_ledger_row(
    client: Client, prompt_request: PromptRequest, resolution: Resolution, values: LedgerValues
) -> int | None:
    """Write the ledger row and return its id. If the resolution is outdated, write nothing; return None."""
    # Looked up once, because each use of `django.db.connection` looks up the connection of the thread.
    database = connections[DEFAULT_DB_ALIAS]
    check_outside_transaction(database.atomic_blocks)
    pointer, is_key = get_pointer_kind(prompt_request), isinstance(client, KeyClient)
    max_skew: int = settings.DRAMATIS_MAX_CLOCK_SKEW
    sql = build_insert_sql(database.vendor, pointer, is_key=is_key, max_skew=max_skew)
    row, seal = values.row, values.row.seal()
    # A missing field is null in the row.
    trace = f',"traceparent":"{values.traceparent}"' if values.traceparent else ""
    skill = f',"skill":{encode_json(row.skill)}' if row.skill is not None else ""
    draft = (
        f'{{{resolution.as_json},"label":{encode_json(row.label)},"slots":{values.slots},'
        f'"served_digest":"{row.served}","size":{row.size},"status":{row.status},'
        f'"request_id":{encode_json(row.request_id)},"at":"{database.ops.adapt_datetimefield_value(row.at)}","seal":"{seal}"{trace}{skill}}}'
    )
    call_sql = build_fetch_call(pointer, is_key=is_key, max_skew=max_skew)
    return write_ledger_row(
        PendingRow(sql, draft, seal, call_sql=call_sql, workspace_id=resolution.workspace_id)
    )


def get_pointer_kind(prompt_request: PromptRequest) -> str:
    # A version by number is checked like one by time: that the label once pointed to it stays true.
    if prompt_request.has_fixed_version:
        return "past"
    return LATEST if prompt_request.label == LATEST else "label"


def check_outside_transaction(blocks: Sequence[object]) -> None:
    # The transaction that Django's TestCase opens around each test is allowed, as for durable atomic blocks.
    if blocks and not getattr(blocks[-1], "_from_testcase", False):
        raise InsideTransaction("Prompts must be served outside of a transaction.")
