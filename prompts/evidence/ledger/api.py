"""REST resource of the ledger: which prompts were served to whom. A bot key sees only its own rows."""

from datetime import UTC
from typing import Any

from django.db.models import Q, QuerySet
from django.urls import URLPattern

from core.db.keyset_pagination import get_keyset_page
from personas.api.exception_handler import RecordNotFound, validation_problem
from personas.api.key_limits import Touches
from personas.api.operations import ApiRequest, Operation
from personas.api.pagination import (
    PAGINATION_PARAMS,
    CursorPage,
    decode_cursor,
    encode_cursor,
    page_response,
    paginate_list,
)
from personas.api.problems import FieldError, ProblemError
from personas.api.responses import ApiResponse, datetime_json, json_response
from personas.api.schema import (
    Schema,
    any_object_schema,
    boolean_schema,
    datetime_schema,
    digest_schema,
    enum_schema,
    integer_schema,
    line_schema,
    nullable_schema,
    object_schema,
    page_schema,
    slug_schema,
)
from personas.api.views import endpoint
from prompts.api_lookup import (
    MAX_ID,
    can_see_label,
    check_number_bounds,
    is_scope_limited,
    list_visible_prompt_ids,
)
from prompts.errors import FetchNotFound
from prompts.evidence.ledger.outdated_bots import OutdatedBot, list_outdated_bots
from prompts.evidence.ledger.selectors import LedgerFilter, list_ledger_entries
from prompts.evidence.replay.services import get_ledger_entry
from prompts.models import LedgerEntry
from prompts.proof.call_values import get_value_digests
from prompts.publishing.versions.serializers import TEXT_SCHEMA, VERSION_REF_SCHEMA, version_ref_json
from prompts.serving.call_contents.selectors import get_remaining_call_values

LEDGER_KINDS = ("prompt", "skill")
KEY_SCHEMA = object_schema({"id": integer_schema(1), "name": TEXT_SCHEMA}, title="KeyReference")
LEDGER_ROW_FIELDS: dict[str, Schema] = {
    "id": integer_schema(1),
    "kind": enum_schema(LEDGER_KINDS, description="What was served.", title="LedgerKind"),
    "skill": nullable_schema(line_schema(255, description="The skill whose SKILL.md was served.")),
    "served_at": datetime_schema(),
    "status": integer_schema(100, 599, description="200, or 304 if the client already had this text."),
    "agent": TEXT_SCHEMA,
    "channel": TEXT_SCHEMA,
    "label": {"type": "string", "description": "With @ and a time if a past version was requested."},
    **VERSION_REF_SCHEMA["properties"],
    "recorded_digest": digest_schema(
        description="Salted digest of the served bytes. The replay of the row has the salt."
    ),
    "size": integer_schema(),
    "request_id": TEXT_SCHEMA,
    "traceparent": nullable_schema(
        line_schema(55, description="The header of the request, if it was valid. The seal does not cover it.")
    ),
    "client": TEXT_SCHEMA,
    "key": nullable_schema(KEY_SCHEMA),
}
LEDGER_ROW_SCHEMA = object_schema(LEDGER_ROW_FIELDS, title="LedgerEntry")
LEDGER_ENTRY_SCHEMA = object_schema(
    {
        **LEDGER_ROW_FIELDS,
        "slots": nullable_schema(
            any_object_schema(
                description="The values of the call. Erased values are missing. Null for bot keys."
            )
        ),
        "slot_digests": any_object_schema(
            description="The digests of these values, which the seal covers: one for each long "
            "value, by its name, and one for all short values together, as `values`. The "
            "time is stored in the row itself."
        ),
        "hash": digest_schema(),
    },
    title="LedgerEntryDetail",
)
OUTDATED_BOT_SCHEMA = object_schema(
    {
        "key": KEY_SCHEMA,
        "agent": TEXT_SCHEMA,
        "channel": TEXT_SCHEMA,
        "label": TEXT_SCHEMA,
        "last_served": VERSION_REF_SCHEMA,
        "current": nullable_schema(VERSION_REF_SCHEMA),
        "served_at": datetime_schema(),
        "outdated_since": datetime_schema(description="When the label moved to another version."),
        "is_rolled_back": boolean_schema(),
        "ledger_id": integer_schema(1),
    },
    title="OutdatedBot",
)
LEDGER_FILTERS: dict[str, Schema] = {
    "agent": slug_schema(),
    "channel": slug_schema(),
    "key": integer_schema(1, description="The ID of a key."),
    "kind": enum_schema(LEDGER_KINDS, title="LedgerKind"),
    "status": {"type": "integer", "enum": [200, 304]},
    "since": datetime_schema(),
    "until": datetime_schema(description="Only entries before this time."),
    "request_id": line_schema(64, least=1),
    "trace_id": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
}
LIST_PARAMETERS: dict[str, Schema] = {**LEDGER_FILTERS, **PAGINATION_PARAMS}
COMMON_OPTIONS: dict[str, Any] = {"bots": True, "touches": Touches.LABEL, "tag": "ledger"}


def index(call: ApiRequest) -> ApiResponse:
    query, rows = call.query, list_visible_entries(call, parse_ledger_filter(call))
    page = get_keyset_page(
        rows.defer("slots"),
        before=decode_cursor(query["cursor"], "ledger") if "cursor" in query else None,
        cursor_rows=LedgerEntry.objects.in_workspace(call.workspace),
        limit=query["limit"],
    )
    cursor = encode_cursor(page.next_cursor, "ledger") if page.next_cursor else None
    return page_response(call, CursorPage(page.rows, cursor), [ledger_entry_json(row) for row in page.rows])


def parse_ledger_filter(call: ApiRequest) -> LedgerFilter:
    query = call.query
    # Convert to UTC, because databases do not support every UTC offset.
    since, until = (query[name].astimezone(UTC) if name in query else None for name in ("since", "until"))
    if since and until and since >= until:
        error = FieldError("Must be after the start.", parameter="until")
        raise ProblemError(validation_problem([error]))
    return LedgerFilter(
        agent=query.get("agent", ""),
        channel=query.get("channel", ""),
        key_id=query.get("key"),
        kind=query.get("kind", ""),
        status=query.get("status"),
        request_id=query.get("request_id", ""),
        trace_id=query.get("trace_id", ""),
        since=since,
        until=until,
    )


def list_visible_entries(call: ApiRequest, filters: LedgerFilter) -> QuerySet[LedgerEntry]:
    rows = list_ledger_entries(call.workspace, filters)
    if is_scope_limited(call.caller):
        rows = rows.filter(prompt__in=list_visible_prompt_ids(call.caller))
    if "labels" in call.caller.key.scopes:
        condition = Q()
        for label in call.caller.key.scopes["labels"]:
            # A fetch for a time in the past is stored with the label “production@<time>”.
            condition |= Q(label=label) | Q(label__startswith=f"{label}@")
        rows = rows.filter(condition)
    return rows.filter(key=call.caller.key) if call.caller.is_bot else rows


def read_ledger_entry(call: ApiRequest, key: int) -> ApiResponse:
    entry = get_visible_entry(call, key)
    body = {
        **ledger_entry_json(entry),
        # Bots do not get the slot values: these may contain workspace text, such as the task of a call.
        "slots": None if call.caller.is_bot else get_remaining_call_values(entry),
        "slot_digests": get_value_digests(entry.slots),
        "hash": entry.seal,
    }
    return json_response(body)


def get_visible_entry(call: ApiRequest, key: int) -> LedgerEntry:
    """Return the ledger row. Raise LedgerRowExpired if it was deleted, 404 if the client may not see it."""
    try:
        entry = get_ledger_entry(call.workspace, check_number_bounds(key, MAX_ID))
    except FetchNotFound:
        raise build_missing_row_error(key) from None
    is_foreign = call.caller.is_bot and entry.key_id != call.caller.key.pk
    is_foreign = is_foreign or not can_see_label(call.caller, entry.label.partition("@")[0])
    if is_foreign or (
        is_scope_limited(call.caller) and entry.prompt_id not in list_visible_prompt_ids(call.caller)
    ):
        raise build_missing_row_error(key)
    return entry


def build_missing_row_error(key: int) -> RecordNotFound:
    """Build the error of a row that does not exist or that the key may not see: both look the same."""
    return RecordNotFound(f"No ledger row {key}, or the limits of this key exclude it.")


def ledger_entry_json(row: LedgerEntry) -> dict[str, Any]:
    return {
        "id": row.pk,
        "kind": row.kind,
        "skill": row.skill,
        "served_at": datetime_json(row.at),
        "status": row.status,
        "agent": row.prompt.agent.slug,
        "channel": row.prompt.channel.slug,
        "label": row.label,
        **version_ref_json(row.version),
        "recorded_digest": row.served_digest,
        "size": row.size,
        "request_id": row.request_id,
        "traceparent": row.traceparent,
        "client": row.reader_label,
        "key": {"id": row.key.pk, "name": row.key.name} if row.key else None,
    }


def read_outdated_bots(call: ApiRequest) -> ApiResponse:
    bots = [bot for bot in list_outdated_bots(call.workspace) if can_see_label(call.caller, bot.label)]
    if is_scope_limited(call.caller):
        visible_ids = set(list_visible_prompt_ids(call.caller))
        bots = [bot for bot in bots if bot.prompt.pk in visible_ids]
    if call.caller.is_bot:
        bots = [bot for bot in bots if bot.key.pk == call.caller.key.pk]
    page = paginate_list(
        bots, "outdated bots", limit=call.query["limit"], cursor=call.query.get("cursor", "")
    )
    return page_response(call, page, [outdated_bot_json(bot) for bot in page.rows])


def outdated_bot_json(bot: OutdatedBot) -> dict[str, Any]:
    return {
        "key": {"id": bot.key.pk, "name": bot.key.name},
        "agent": bot.prompt.agent.slug,
        "channel": bot.prompt.channel.slug,
        "label": bot.label,
        "last_served": version_ref_json(bot.fetched_version),
        "current": bot.current_version and version_ref_json(bot.current_version),
        "served_at": datetime_json(bot.fetched_at),
        "outdated_since": datetime_json(bot.since),
        "is_rolled_back": bot.is_rolled_back,
        "ledger_id": bot.ledger_id,
    }


urlpatterns: list[URLPattern] = [
    endpoint(
        "ledger",
        "ledger-list",
        get=Operation(
            index,
            "List served prompts and skill files, newest first",
            operation_id="listLedgerEntries",
            answer=page_schema(LEDGER_ROW_SCHEMA),
            query=LIST_PARAMETERS,
            **COMMON_OPTIONS,
        ),
    ),
    endpoint(
        "ledger/outdated",
        "ledger-outdated",
        get=Operation(
            read_outdated_bots,
            "List bots whose last fetch is outdated",
            operation_id="listOutdatedBots",
            answer=page_schema(OUTDATED_BOT_SCHEMA),
            query=PAGINATION_PARAMS,
            **COMMON_OPTIONS,
        ),
    ),
    endpoint(
        "ledger/<int:id>",
        "ledger-one",
        get=Operation(
            read_ledger_entry,
            "Get a ledger entry",
            operation_id="getLedgerEntry",
            answer=LEDGER_ENTRY_SCHEMA,
            refusals={410: "erased"},
            **COMMON_OPTIONS,
        ),
    ),
]
