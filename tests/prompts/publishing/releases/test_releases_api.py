"""Releases API: a key acts for the user who created it, so the requester cannot approve."""

from collections.abc import Callable
from typing import Any

import pytest

from personas.models import Agent, Soul, User, Workspace
from personas.roles import Role
from prompts.models import PromptLabel, Release
from tests.api_client import Api
from tests.factories import join, make_user
from tests.personas.api.prompts_stage import (  # noqa: F401  # some are fixtures
    Deck,
    a_foreign_deck,
    a_narrow_key,
    good,
    make_deck,
    problem,
)
from tests.shared_cast import (  # noqa: F401  # fixtures
    SharedCast,
    shared_alice,
    shared_as_alice,
    shared_as_bob,
    shared_as_mallory,
    shared_bob,
    shared_cast,
    shared_elsewhere,
    shared_mallory,
    shared_workspace,
)

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
PILOT = {"agent": "pilot", "channel": "deck"}
COOK = {"agent": "cook", "channel": "deck"}


@pytest.fixture(scope="module")
def reviewed(cast: SharedCast, django_db_blocker: Any) -> Deck:
    with django_db_blocker.unblock():
        return make_deck(cast.workspace, release_policy="reviewed")


@pytest.fixture(name="deck")
def a_reviewed_deck(reviewed: Deck, workspace: Workspace) -> Deck:
    """Reload the objects: a rollback does not reset their attributes."""
    soul = Soul.objects.in_workspace(workspace).get(pk=reviewed.soul.pk)
    agents = Agent.objects.in_workspace(workspace).in_bulk([agent.pk for agent in reviewed.agents])
    return Deck(workspace, soul, [agents[agent.pk] for agent in reviewed.agents])


@pytest.fixture
def reviewer(key_for: Callable[..., Api], deck: Deck) -> Api:
    rita = make_user("Rita")
    join(deck.workspace, rita, Role.REVIEWER)
    return key_for(deck.workspace, rita)


@pytest.fixture
def editor(key_for: Callable[..., Api], deck: Deck, bob: User) -> Api:
    return key_for(deck.workspace, bob)


def ask(api: Api, *prompts: dict[str, str]) -> Any:
    return api.post("releases", {"message": "Braver.", "prompts": list(prompts or (PILOT, COOK))})


def production(deck: Deck) -> list[int]:
    rows = PromptLabel.objects.in_workspace(deck.workspace).filter(name="production")
    return list(rows.order_by("prompt").values_list("version__number", flat=True))


def test_a_release_is_requested_approved_and_run(editor: Api, reviewer: Api, deck: Deck) -> None:
    response = ask(editor)
    body = good(response, 201)
    assert response["Location"] == "/api/v1/releases/1"
    assert (body["status"], body["prompts"]) == ("requested", 2)
    assert body["requested_by"].startswith("bob@example.com (key ")
    assert [item["before"] for item in body["items"]] == [None, None]
    assert good(editor.get("releases?status=open"))["items"][0]["number"] == 1
    problem(editor.post("releases/1:publish"), 403, "not_allowed")
    assert good(reviewer.post("releases/1:approve"))["status"] == "approved"
    assert good(editor.post("releases/1:publish"))["status"] == "released"
    assert production(deck) == [1, 1]
    problem(editor.post("releases/1:withdraw"), 409, "release_closed")
    assert good(editor.get("releases?status=open"))["items"] == []
    assert problem(ask(editor), 409, "nothing_to_release")


def test_the_requester_cannot_approve_with_another_key(
    admin: Api, deck: Deck, key_for: Callable[..., Api], alice: User
) -> None:
    good(ask(admin), 201)
    another = key_for(deck.workspace, alice)
    problem(another.post("releases/1:approve"), 403, "not_allowed")
    assert good(another.get("releases/1"))["status"] == "requested"


def test_a_release_is_rejected_withdrawn_or_forced_with_a_reason(
    admin: Api, editor: Api, reviewer: Api, bot: Api, *, deck: Deck, key_for: Callable[..., Api], alice: User
) -> None:
    for _ in range(3):
        good(ask(editor), 201)
    problem(reviewer.post("releases/1:reject", {"reason": " "}), 422, "invalid")
    assert good(reviewer.post("releases/1:reject", {"reason": "Too brave."}))["reason"] == "Too brave."
    assert good(editor.post("releases/2:withdraw"))["status"] == "withdrawn"
    for api in (editor, reviewer, bot, admin):
        problem(api.post("releases/3:override", {"reason": "Now."}), 403, "out_of_scope")
    overrider = key_for(deck.workspace, alice, verbs=["override"])
    forced = good(overrider.post("releases/3:override", {"reason": "It burns."}))
    assert (forced["is_override"], forced["status"]) == (True, "released")
    assert production(deck) == [1, 1]


def test_what_was_built_since_voids_a_release_and_the_void_is_kept(
    editor: Api, reviewer: Api, deck: Deck
) -> None:
    good(ask(editor), 201)
    deck.reword("Be wise.")
    assert all(item["is_outdated"] for item in good(editor.get("releases/1"))["items"])
    for headers in ({"Idempotency_Key": "once"}, {"Idempotency_Key": "once"}):
        problem(reviewer.post("releases/1:approve", **headers), 409, "release_voided")
    assert good(editor.get("releases/1"))["status"] == "voided"
    assert production(deck) == []


def test_only_what_was_seen_is_released(editor: Api, deck: Deck, elsewhere_deck: Deck) -> None:
    seen = deck.version(1).digest
    deck.reword("Be wise.")
    for digest in (seen, elsewhere_deck.version(2).digest, "0" * 64):
        body = problem(ask(editor, COOK, PILOT | {"digest": digest}), 422, "invalid")
        assert body["errors"][0]["pointer"] == "/prompts/1/digest"
    assert not Release.objects.in_workspace(deck.workspace).exists()
    good(ask(editor, PILOT | {"digest": deck.version(2).digest}), 201)


def test_foreign_and_missing_prompts_look_alike(
    admin: Api, narrow: Api, deck: Deck, elsewhere_deck: Deck
) -> None:
    good(ask(admin), 201)
    for wish in ({"agent": "no-such", "channel": "deck"}, {"agent": "pilot", "channel": "no-such"}):
        body = problem(ask(admin, wish), 422, "invalid")
        assert body["errors"] == [{"detail": "Prompt not found.", "pointer": "/prompts/0"}]
    body = problem(ask(narrow, PILOT), 422, "invalid")
    assert body["errors"][0]["detail"] == "Prompt not found."
    for number in (2, 0, 2**40):
        problem(admin.get(f"releases/{number}"), 404, "not_found")


def test_a_narrow_key_sees_releases_of_its_own_agent_alone(admin: Api, narrow: Api, deck: Deck) -> None:
    good(ask(admin), 201)
    problem(narrow.get("releases/1"), 404, "not_found")
    for action in ("approve", "publish", "withdraw"):
        problem(narrow.post(f"releases/1:{action}"), 404, "not_found")
    problem(narrow.post("releases/1:reject", {"reason": "x"}), 404, "not_found")
    good(ask(narrow, COOK), 201)
    assert [row["number"] for row in good(narrow.get("releases"))["items"]] == [2]
    assert good(narrow.post("releases/2:withdraw"))["status"] == "withdrawn"


def test_bots_and_viewers_ask_for_nothing(bot: Api, deck: Deck, key_for: Callable[..., Api]) -> None:
    vera = make_user("Vera")
    join(deck.workspace, vera, Role.VIEWER)
    viewer = key_for(deck.workspace, vera)
    for api in (bot, viewer):
        problem(ask(api), 403, "out_of_scope")
    assert good(viewer.get("releases"))["items"] == []
    problem(bot.get("releases"), 403, "out_of_scope")
