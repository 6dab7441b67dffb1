"""Bots through the API: what is released, served and loaded, within the scopes of a key."""

from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest

from personas.api_keys.format import BOT
from tests.api_client import Api
from tests.personas.api.prompts_stage import (  # noqa: F401  # some are fixtures
    Deck,
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


def load(api: Api, text: str, agent: str = "pilot", **facts: Any) -> Any:
    digest = sha256(text.encode()).hexdigest()
    body = {"agent": agent, "channel": "deck", "digest": digest, "text": text, **facts}
    return api.post("prompts:report", body)


def test_a_report_names_file_reason_and_session_and_the_changed_line(
    bot: Api, admin: Api, deck: Deck
) -> None:
    served = deck.fetch(bot)
    facts = {"path": "CLAUDE.md", "reason": "session_start", "session": "s-1"}
    data = good(load(bot, f"{served.text}\nMore.", **facts), 201)
    assert (data["status"], data["changed_lines"]["ledger_id"]) == ("never_released", served.ledger_id)
    [block] = data["changed_lines"]["blocks"]
    assert (block["line_count"], block["served_line_count"]) == (1, 0)
    [row] = good(admin.get("reports"))["items"]
    assert {name: row[name] for name in facts} == facts
    assert row["changed_lines"] == data["changed_lines"]
    assert "text" not in row


def test_a_text_is_not_compared_with_one_that_the_bot_was_not_served(
    bot: Api, admin: Api, deck: Deck
) -> None:
    """Otherwise the changed lines would tell which lines of the prompt a bot has guessed."""
    text = deck.fetch(admin).text
    assert good(load(bot, f"{text}\nMore."), 201)["changed_lines"] is None
    assert good(bot.get("reports"))["items"][0]["changed_lines"] is None
    assert good(bot.get("bots"))["items"][0]["loaded"]["changed_lines"] is None
    assert good(admin.get("reports"))["items"][0]["changed_lines"]["blocks"]
    deck.fetch(bot)
    assert good(load(bot, f"{text}\nMore."), 201)["changed_lines"]["blocks"]


def test_bots_are_listed_with_released_served_and_loaded(bot: Api, admin: Api, deck: Deck) -> None:
    served = deck.fetch(bot)
    [row] = good(admin.get("bots"))["items"]
    assert (row["status"], row["loaded"], row["since"]) == ("unknown", None, row["served"]["served_at"])
    good(load(bot, served.text), 201)
    deck.reword("Be wise.")
    [row] = good(admin.get("bots"))["items"]
    assert (row["status"], row["label"]) == ("outdated", "production")
    assert [row[name]["version"] for name in ("released", "served", "loaded")] == [2, 1, 1]
    assert good(admin.get("bots?status=same"))["items"] == []
    assert good(admin.get("bots?status=outdated&agent=pilot&channel=deck"))["items"] == [row]
    assert good(admin.get("bots?agent=cook"))["items"] == []
    problem(admin.get("bots?status=strange"), 422, "invalid")


def test_bots_are_visible_within_the_keys_scopes(
    bot: Api, admin: Api, narrow: Api, deck: Deck, scoped: Callable[..., Api]
) -> None:
    other = scoped(BOT)
    for api, agent in ((bot, "pilot"), (other, "cook")):
        good(load(api, "Other.", agent), 201)
    first = good(admin.get("bots?limit=1"))
    rest = good(admin.get(f"bots?limit=1&cursor={first['next_cursor']}"))
    assert {row["agent"] for row in first["items"] + rest["items"]} == {"pilot", "cook"}
    assert [row["agent"] for row in good(bot.get("bots"))["items"]] == ["pilot"]
    assert [row["agent"] for row in good(narrow.get("bots"))["items"]] == ["cook"]
    assert good(scoped(labels=["staging"]).get("bots"))["items"] == []


@pytest.mark.planted
@pytest.mark.usefixtures("ashore")
@pytest.mark.parametrize("check", ["is_scope_limited", "can_see_label"])
def test_a_list_that_ignores_the_scopes_of_a_key_is_detected(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, check: str
) -> None:
    names = ("bot", "admin", "narrow", "deck", "scoped")
    fixtures = [request.getfixturevalue(name) for name in names]
    monkeypatch.setattr(f"prompts.evidence.drift.api.{check}", lambda *of: check == "can_see_label")
    with pytest.raises(AssertionError):
        test_bots_are_visible_within_the_keys_scopes(*fixtures)


def test_a_digest_of_another_text_is_rejected(bot: Api, deck: Deck) -> None:
    body = {"agent": "pilot", "channel": "deck", "digest": "0" * 64, "text": "Hello."}
    assert problem(bot.post("prompts:report", body), 422)["errors"][0]["pointer"] == "/text"
