"""Digest reports of bots: stored as sent, and compared with what was served."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError, transaction

from personas.api_keys.format import BOT
from prompts.models import DigestReport
from tests.api_client import Api
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

pytestmark = pytest.mark.django_db


def report(api: Api, digest: str, agent: str = "pilot", **fields: Any) -> Any:
    return api.post("prompts:report", {"agent": agent, "channel": "deck", "digest": digest, **fields})


def test_a_bot_learns_whether_it_is_up_to_date(bot: Api, admin: Api, deck: Deck) -> None:
    served = deck.fetch(bot)
    data = good(report(bot, served.digest, ledger_id=served.ledger_id, request_id="mine-1"), 201)
    assert (data["is_known_version"], data["versions"], data["is_last_served"]) == (True, [1], True)
    assert data["labels"] == ["latest", "production"]
    assert data["last_served"]["ledger_id"] == served.ledger_id
    deck.reword("Be wise.")
    assert good(report(bot, served.digest), 201)["labels"] == []
    newer = deck.fetch(bot)
    data = good(report(bot, served.digest), 201)
    assert (data["is_known_version"], data["is_last_served"]) == (True, False)
    assert data["last_served"]["digest"] == newer.digest


def test_the_digest_of_the_served_bytes_matches_too(bot: Api, deck: Deck) -> None:
    served = deck.fetch(bot)
    data = good(report(bot, served.served_digest), 201)
    assert (data["versions"], data["is_last_served"]) == ([1], True)
    # The plain SHA-256 is not stored, because a short text can be guessed from it.
    assert data["digest"] == served.row.served != served.served_digest


def test_an_unknown_digest_is_stored_and_listed(bot: Api, admin: Api, deck: Deck) -> None:
    data = good(report(bot, "0" * 64), 201)
    assert (data["is_known_version"], data["versions"], data["is_last_served"]) == (False, [], False)
    assert data["last_served"] is None
    [row] = good(admin.get("reports?is_known_version=false"))["items"]
    assert (row["digest"], row["key"]["name"]) == ("0" * 64, row["client"].removeprefix("bot:"))
    assert good(admin.get("reports?is_known_version=true"))["items"] == []


def test_a_retry_is_one_report(bot: Api, deck: Deck) -> None:
    body = {"agent": "pilot", "channel": "deck", "digest": "0" * 64}
    one = bot.post("prompts:report", body, Idempotency_Key="once")
    other = bot.post("prompts:report", body, Idempotency_Key="once")
    assert one.content == other.content
    assert DigestReport.objects.in_workspace(deck.workspace).count() == 1


@pytest.mark.hard
def test_foreign_and_missing_rows_give_the_same_error(
    bot: Api, deck: Deck, elsewhere_deck: Deck, abroad: Api, scoped: Callable[..., Api]
) -> None:
    foreign = elsewhere_deck.fetch(abroad)
    theirs = deck.fetch(scoped(BOT))
    of_cook = deck.fetch(bot, "cook")
    data = good(report(bot, foreign.digest), 201)
    assert data["is_known_version"] is False
    for number in (foreign.ledger_id, theirs.ledger_id, of_cook.ledger_id, of_cook.ledger_id + 100_000):
        answer = problem(report(bot, "0" * 64, ledger_id=number), 422, "invalid")
        assert answer["errors"][0]["pointer"] == "/ledger_id"
    for agent, api in (("no-such", bot), ("pilot", scoped(BOT, agents=["cook"]))):
        answer = problem(report(api, "0" * 64, agent), 422, "invalid")
        assert answer["errors"] == [{"detail": "Prompt not found.", "pointer": "/agent"}]
    assert DigestReport.objects.in_workspace(deck.workspace).count() == 1


def test_reports_are_visible_within_the_keys_scopes(
    bot: Api, admin: Api, narrow: Api, deck: Deck, scoped: Callable[..., Api]
) -> None:
    other = scoped(BOT)
    for api, agent in ((bot, "pilot"), (other, "cook")):
        good(report(api, "0" * 64, agent), 201)
    assert [row["agent"] for row in good(admin.get("reports"))["items"]] == ["cook", "pilot"]
    assert [row["agent"] for row in good(admin.get("reports?agent=pilot"))["items"]] == ["pilot"]
    assert [row["agent"] for row in good(bot.get("reports"))["items"]] == ["pilot"]
    assert [row["agent"] for row in good(narrow.get("reports"))["items"]] == ["cook"]
    readers = scoped(BOT, verbs=["read"])
    problem(report(readers, "0" * 64), 403, "out_of_scope")


def test_a_report_is_never_changed(bot: Api, deck: Deck) -> None:
    good(report(bot, "0" * 64), 201)
    rows = DigestReport.objects.in_workspace(deck.workspace)
    for change in (lambda: rows.update(digest="1" * 64), rows.all().delete):
        with pytest.raises(DatabaseError), transaction.atomic():
            change()
