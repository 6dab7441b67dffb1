"""The ledger: what was handed out to whom; a bot sees its own rows."""

from datetime import UTC
from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.urls import URLPattern

from personas.api.exception_handler import invalid
from personas.api.operations import Call, Operation
from personas.api.pagination import PAGING, Page, page_answered, read_cursor, write_cursor
from personas.api.problems import FieldError, ProblemError
from personas.api.responses import Answer, answered, moment_told
from personas.api.schema import (
    Shape,
    anything,
    digest,
    flag,
    line,
    listed,
    moment,
    nullable,
    page_of,
    shape,
    slug,
    whole,
)
from personas.api.views import endpoint
from prompts.api_lookup import LARGEST_ID, bounded, is_limited, prompt_ids
from prompts.errors import UnknownFetch
from prompts.ledger.selectors import LedgerFilter, ledger_rows, older_than
from prompts.ledger.stale_bots import StaleBot, stale_bots
from prompts.models import LedgerEntry
from prompts.replay.services import found_entry
from prompts.versions.serializers import REF, TEXT, ref

KEY = shape({"id": whole(1), "name": TEXT})
FACTS: dict[str, Shape] = {
    "id": whole(1),
    "at": moment(),
    "status": whole(100, 599, description="200, or 304 when the caller had these words already."),
    "agent": TEXT,
    "channel": TEXT,
    "label": {"type": "string", "description": "With @ and a moment when the past was asked for."},
    "version": REF,
    "served_digest": digest(description="SHA-256 of the very bytes."),
    "size": whole(),
    "request_id": TEXT,
    "reader": TEXT,
    "key": nullable(KEY),
}
ROW = shape(FACTS)
ENTRY = shape({**FACTS, "slots": anything(description="The facts of the call."), "seal": digest()})
STALE = shape(
    {
        "key": KEY,
        "agent": TEXT,
        "channel": TEXT,
        "label": TEXT,
        "held": REF,
        "present": nullable(REF),
        "fetched_at": moment(),
        "since": moment(description="Since when the label is no longer where the bot saw it."),
        "is_rolled_back": flag(),
        "ledger_id": whole(1),
    }
)
MOST_STALE = 200
STALE_LIST = shape({"data": listed(STALE, most=MOST_STALE), "count": whole()})
LISTING: dict[str, Shape] = {
    "agent": slug(),
    "channel": slug(),
    "key": whole(1, description="The id of a key."),
    "status": {"type": "integer", "enum": [200, 304]},
    "since": moment(),
    "until": moment(description="Before this moment."),
    "request_id": line(64, least=1),
    **PAGING,
}
COMMON: dict[str, Any] = {"bots": True, "tag": "ledger"}


def index(call: Call) -> Answer:
    said, rows = call.query, visible_rows(call, wanted(call))
    if "cursor" in said:
        rows = rows.filter(older_than(call.workspace, read_cursor(said["cursor"])))
    found = list(rows.defer("slots")[: said["limit"] + 1])
    shown = found[: said["limit"]]
    page = Page(shown, write_cursor(shown[-1].pk) if len(found) > len(shown) else None)
    return page_answered(call, page, [told(row) for row in shown])


def wanted(call: Call) -> LedgerFilter:
    said = call.query
    # In UTC: databases take no offsets as wide as those that can be written.
    since, until = (said[name].astimezone(UTC) if name in said else None for name in ("since", "until"))
    if since and until and since >= until:
        wrong = FieldError("This must be after the beginning.", parameter="until")
        raise ProblemError(invalid([wrong]))
    return LedgerFilter(
        agent=said.get("agent", ""),
        channel=said.get("channel", ""),
        key_id=said.get("key"),
        status=said.get("status"),
        request_id=said.get("request_id", ""),
        since=since,
        until=until,
    )


def visible_rows(call: Call, asked: LedgerFilter) -> QuerySet[LedgerEntry]:
    rows = ledger_rows(call.workspace, asked)
    if is_limited(call.caller):
        rows = rows.filter(prompt__in=prompt_ids(call.caller))
    return rows.filter(key=call.caller.key) if call.caller.is_bot else rows


def read(call: Call, key: int) -> Answer:
    entry = visible_entry(call, key)
    return answered({**told(entry), "slots": entry.slots, "seal": entry.seal})


def visible_entry(call: Call, key: int) -> LedgerEntry:
    """The row; raises where it was let go, and says no more than nothing where it is somebody else's."""
    try:
        entry = found_entry(call.workspace, bounded(key, LARGEST_ID))
    except UnknownFetch:
        raise Http404 from None
    is_theirs = call.caller.is_bot and entry.key_id != call.caller.key.pk
    if is_theirs or (is_limited(call.caller) and entry.prompt_id not in prompt_ids(call.caller)):
        raise Http404
    return entry


def told(row: LedgerEntry) -> dict[str, Any]:
    return {
        "id": row.pk,
        "at": moment_told(row.at),
        "status": row.status,
        "agent": row.prompt.agent.slug,
        "channel": row.prompt.channel.slug,
        "label": row.label,
        "version": ref(row.version),
        "served_digest": row.served_digest,
        "size": row.size,
        "request_id": row.request_id,
        "reader": row.reader_label,
        "key": {"id": row.key.pk, "name": row.key.name} if row.key else None,
    }


def stale(call: Call) -> Answer:
    bots = stale_bots(call.workspace)
    if is_limited(call.caller):
        known = set(prompt_ids(call.caller))
        bots = [bot for bot in bots if bot.prompt.pk in known]
    if call.caller.is_bot:
        bots = [bot for bot in bots if bot.key.pk == call.caller.key.pk]
    return answered({"data": [stale_told(bot) for bot in bots[:MOST_STALE]], "count": len(bots)})


def stale_told(bot: StaleBot) -> dict[str, Any]:
    return {
        "key": {"id": bot.key.pk, "name": bot.key.name},
        "agent": bot.prompt.agent.slug,
        "channel": bot.prompt.channel.slug,
        "label": bot.label,
        "held": ref(bot.held),
        "present": bot.present and ref(bot.present),
        "fetched_at": moment_told(bot.fetched_at),
        "since": moment_told(bot.since),
        "is_rolled_back": bot.is_rolled_back,
        "ledger_id": bot.ledger_id,
    }


urlpatterns: list[URLPattern] = [
    endpoint(
        "ledger",
        "ledger-list",
        get=Operation(
            index, "List what was handed out, newest first", answer=page_of(ROW), query=LISTING, **COMMON
        ),
    ),
    endpoint(
        "ledger/stale",
        "ledger-stale",
        get=Operation(
            stale, "List bots that hold another version than their label", answer=STALE_LIST, **COMMON
        ),
    ),
    endpoint(
        "ledger/<int:key>",
        "ledger-one",
        get=Operation(read, "Read a row of the ledger", answer=ENTRY, refusals={410: "erased"}, **COMMON),
    ),
]
