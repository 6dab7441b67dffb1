"""The ledger through the API: lists, replays and evidence."""

from collections.abc import Callable
from datetime import timedelta
from urllib.parse import quote

import pytest
from django.utils import timezone

from core.salted_digests import salt_digest
from personas.api_keys.format import BOT, key_digest
from personas.models import ApiKey
from prompts.evidence.erasure.services import erase_record
from prompts.evidence.replay.evidence import run_evidence_checks
from prompts.models import LedgerBlock, LedgerEntry, LedgerExpiry
from tests.api_client import Api
from tests.factories import BY, make_memory
from tests.personas.api.prompts_stage import (  # noqa: F401  # some are fixtures
    Deck,
    a_foreign_bot,
    a_foreign_deck,
    a_narrow_bot,
    a_narrow_key,
    good,
    keys_of_alice,
    problem,
)
from tests.personas.api.shared_deck import (  # noqa: F401  # fixtures
    ashore,
    shared_alice,
    shared_bob,
    shared_deck,
    shared_workspace,
)
from tests.prompts.serving.serving_stage import fetch

pytestmark = pytest.mark.django_db


def timestamp(**ago: float) -> str:
    return quote((timezone.now() - timedelta(**ago)).isoformat())


def key_of(api: Api) -> ApiKey:
    return ApiKey.unscoped.get(digest=key_digest(api.secret))


@pytest.mark.slow
def test_the_ledger_is_listed_newest_first_and_filtered(admin: Api, bot: Api, deck: Deck) -> None:
    first = deck.fetch(bot)
    second = deck.fetch(bot, "cook")
    third = deck.fetch(bot, known=second.digest)
    page = good(admin.get("ledger?limit=2"))
    assert [row["id"] for row in page["items"]] == [third.ledger_id, second.ledger_id]
    rest = good(admin.get(f"ledger?limit=2&cursor={page['next_cursor']}"))
    assert [row["id"] for row in rest["items"]] == [first.ledger_id]
    [row] = rest["items"]
    assert (row["agent"], row["channel"], row["label"]) == ("pilot", "deck", "production")
    assert row["recorded_digest"] == first.row.served
    assert row["digest"] == first.digest
    key = key_of(bot).pk
    for query, ids in {
        "agent=cook": [second.ledger_id],
        "channel=no-such": [],
        "status=304": [third.ledger_id],
        f"request_id={first.request_id}": [first.ledger_id],
        f"key={key}&agent=cook": [second.ledger_id],
        f"key={key + 100_000}": [],
        f"since={timestamp(hours=-1)}": [],
        f"until={timestamp(hours=1)}": [],
        f"since={timestamp(hours=1)}&status=304": [third.ledger_id],
    }.items():
        assert [one["id"] for one in good(admin.get(f"ledger?{query}"))["items"]] == ids, query
    for invalid in (
        "status=500",
        f"key={2**70}",
        "since=yesterday",
        f"since={timestamp()}&until={timestamp(hours=1)}",
    ):
        problem(admin.get(f"ledger?{invalid}"), 422, "invalid")


def test_a_row_is_read_and_replayed_to_the_byte(admin: Api, bot: Api, deck: Deck) -> None:
    served = deck.fetch(bot)
    deck.reword("Be wise.")
    row = good(admin.get(f"ledger/{served.ledger_id}"))
    assert row["request_id"] == served.request_id
    assert "slots" in row
    data = good(admin.get(f"ledger/{served.ledger_id}/replay"))
    assert data["text"] == served.text
    assert data["served_digest"] == served.served_digest
    assert data["recorded_digest"] == served.row.served == salt_digest(data["served_digest"], data["salt"])
    assert data["ledger_entry"] == {name: row[name] for name in data["ledger_entry"]}
    assert data["spans"][-1]["end"] == len(served.text)
    assert "soul" in {one["kind"] for one in data["spans"]}
    bundle = good(admin.get(f"ledger/{served.ledger_id}/evidence"))
    checks = run_evidence_checks(bundle, None)
    assert checks
    assert not [check for check in checks if check.state == "failed"]


def test_a_timestamp_is_replayed_for_users_only(admin: Api, bot: Api, narrow: Api, deck: Deck) -> None:
    before = quote(timezone.now().isoformat())
    deck.reword("Be wise.")
    base = "replay?agent=pilot&channel=deck"
    data = good(admin.get(f"{base}&at={before}"))
    assert (data["version"], data["ledger_entry"]) == (1, None)
    assert "Be brave." in data["text"]
    assert good(admin.get(f"{base}&label=latest&at={quote(timezone.now().isoformat())}"))["version"] == 2
    problem(admin.get(f"{base}&at=0131-12-29T11:14:13-19:34"), 404)
    good(admin.get("ledger?since=0131-12-29T11:14:13-19:34&until=9998-01-01T00:00:00%2B23:59"))
    problem(bot.get(f"{base}&at={before}"), 403, "out_of_scope")
    problem(narrow.get(f"{base}&at={before}"), 404, "not_found")
    problem(admin.get(f"{base}&at={timestamp(days=9)}"), 404)
    problem(admin.get(f"replay?agent=no-such&channel=deck&at={before}"), 404, "not_found")
    for name, query in (
        ("at", f"{base}&at={timestamp(hours=-1)}"),
        ("at", base),
        ("agent", "replay?channel=deck"),
    ):
        assert problem(admin.get(query), 422, "invalid")["errors"][0]["parameter"] == name


def test_a_bot_reads_its_own_rows_only_and_replays_none(
    bot: Api, deck: Deck, scoped: Callable[..., Api]
) -> None:
    other = scoped(BOT)
    mine, theirs = deck.fetch(bot), deck.fetch(other)
    assert [row["id"] for row in good(bot.get("ledger"))["items"]] == [mine.ledger_id]
    response = bot.get(f"ledger/{mine.ledger_id}")
    assert good(response)["slots"] is None
    assert "Be " not in response.content.decode()
    problem(bot.get(f"ledger/{theirs.ledger_id}"), 404, "not_found")
    for row in (mine, theirs):
        for address in ("/replay", "/evidence"):
            problem(bot.get(f"ledger/{row.ledger_id}{address}"), 403, "out_of_scope")
    assert good(bot.get(f"ledger?key={key_of(other).pk}"))["items"] == []


@pytest.mark.hard
def test_foreign_rows_look_like_missing_ones(
    admin: Api, narrow: Api, bot: Api, elsewhere_deck: Deck, abroad: Api
) -> None:
    foreign = elsewhere_deck.fetch(abroad).ledger_id
    hidden = fetch(bot.secret).ledger_id
    for address in ("", "/replay", "/evidence"):
        details = {
            problem(admin.get(f"ledger/{number}{address}"), 404, "not_found")["detail"]
            for number in (foreign, foreign + 100_000, 0, 2**80)
        }
        assert len(details) == 1
        problem(narrow.get(f"ledger/{hidden}{address}"), 404, "not_found")
    assert good(admin.get(f"ledger?key={key_of(abroad).pk}"))["items"] == []
    assert good(narrow.get("ledger"))["items"] == []
    assert good(narrow.get("ledger?agent=pilot"))["items"] == []


def test_keys_limited_to_labels_replay_only_those(bot: Api, deck: Deck, scoped: Callable[..., Api]) -> None:
    canaries = scoped(labels=["canary"])
    served = deck.fetch(bot)
    problem(canaries.get(f"ledger/{served.ledger_id}"), 404, "not_found")
    problem(canaries.get(f"ledger/{served.ledger_id}/replay"), 404, "not_found")
    assert canaries.get("ledger").json()["items"] == []
    problem(canaries.get(f"replay?agent=pilot&channel=deck&at={timestamp()}"), 403, "out_of_scope")


def test_erased_text_is_not_replayed(admin: Api, bot: Api, deck: Deck) -> None:
    memory = make_memory(deck.workspace, "Mrs Penhaligon is fond of tea.", agent=deck.agents[0])
    deck.build()
    served, then = deck.fetch(bot), quote(timezone.now().isoformat())
    erase_record(memory, reason="Asked for.", by=BY)
    problem(admin.get(f"ledger/{served.ledger_id}/replay"), 410, "erased")
    problem(admin.get(f"replay?agent=pilot&channel=deck&at={then}"), 410, "erased")
    evidence = admin.get(f"ledger/{served.ledger_id}/evidence")
    assert evidence.status_code == 200
    assert b"Penhaligon" not in evidence.content


def test_expired_rows_are_distinguished_from_unknown_rows(admin: Api, deck: Deck) -> None:
    now, id_range = timezone.now(), {"first_id": 10**9, "last_id": 10**9 + 5}
    block = LedgerBlock(
        workspace=deck.workspace,
        sequence=1,
        count=6,
        rows="0" * 64,
        first_at=now,
        last_at=now,
        at=now,
        hash="0" * 64,
        **id_range,
    )
    block.save()
    LedgerExpiry(workspace=deck.workspace, block=block, months=6, at=now, hash="0" * 64, **id_range).save()
    for address in ("", "/replay", "/evidence"):
        problem(admin.get(f"ledger/{10**9 + 2}{address}"), 410, "expired")
        problem(admin.get(f"ledger/{10**9 + 6}{address}"), 404, "not_found")


@pytest.mark.slow
def test_outdated_bots_are_listed(
    admin: Api, bot: Api, narrow: Api, deck: Deck, scoped: Callable[..., Api]
) -> None:
    other = scoped(BOT)
    fetched = deck.fetch(bot)
    deck.fetch(other)
    assert good(admin.get("ledger/outdated"))["items"] == []
    deck.reword("Be wise.")
    data = good(admin.get("ledger/outdated"))
    assert len(data["items"]) == 2
    first = good(admin.get("ledger/outdated?limit=1"))
    rest = good(admin.get(f"ledger/outdated?limit=1&cursor={first['next_cursor']}"))
    assert first["items"] + rest["items"] == data["items"]
    assert (rest["next_cursor"], data["next_cursor"]) == (None, None)
    assert {one["ledger_id"] for one in data["items"]} >= {fetched.ledger_id}
    assert data["items"][0]["last_served"]["version"] == 1
    assert data["items"][0]["current"]["version"] == 2
    assert [one["ledger_id"] for one in good(bot.get("ledger/outdated"))["items"]] == [fetched.ledger_id]
    assert good(narrow.get("ledger/outdated"))["items"] == []
    assert LedgerEntry.objects.in_workspace(deck.workspace).count() == 2
