"""Labels API: conditional moves, removal, roll-back and protection."""

from collections.abc import Callable

import pytest

from personas.models import Agent, User
from prompts.models import LabelRule, PromptLabel
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
LABELS = "agents/pilot/channels/deck/labels"


@pytest.fixture
def grown(deck: Deck) -> Deck:
    """Three versions of each prompt."""
    deck.reword("Be wise.")
    deck.reword("Be kind.")
    return deck


@pytest.mark.slow
def test_a_label_is_put_moved_and_taken_off(admin: Api, bot: Api, grown: Deck) -> None:
    at = f"{LABELS}/canary"
    put = admin.call("PUT", at, {"version": 1, "note": "Try it"}, If_Match='"0"')
    assert (good(put, 201)["version"], put["ETag"]) == (1, '"1"')
    by_digest = {"version": grown.version(2).digest, "expected": grown.version(1).digest}
    assert good(admin.call("PUT", at, by_digest))["version"] == 2
    assert good(admin.call("PUT", at, {"version": 3, "expected": 2}))["version"] == 3
    assert good(bot.get(at))["digest"] == grown.version(3).digest
    assert {row["name"]: row["version"] for row in good(bot.get(LABELS))["items"]} == {
        "canary": 3,
        "production": 3,
    }
    problem(bot.get(f"{at}/moves"), 403, "out_of_scope")
    moves = good(admin.get(f"{at}/moves"))["items"]
    assert [(row["version"], row["note"]) for row in moves] == [(3, ""), (2, ""), (1, "Try it")]
    assert moves[0]["previous"]["version"] == 2
    problem(admin.call("DELETE", at), 428, "precondition_required")
    problem(admin.call("DELETE", at, If_Match='"2"'), 412, "precondition_failed")
    assert admin.call("DELETE", at, If_Match='"3"').status_code == 204
    problem(admin.get(at), 404, "not_found")
    assert good(admin.get(f"{at}/moves?limit=1"))["items"][0]["version"] is None


def test_a_name_that_is_too_long_is_named_as_a_parameter(admin: Api, grown: Deck) -> None:
    path = f"{LABELS}/{'x' * 41}"
    answer = admin.call("PUT", path, {"version": 1}, If_None_Match="*")
    [error] = answer.json()["errors"]
    assert (answer.status_code, error["parameter"], "pointer" in error) == (422, "label", False)


def test_a_label_is_created_once(admin: Api, grown: Deck) -> None:
    path, body = f"{LABELS}/canary", {"version": 1}
    assert admin.call("PUT", path, body).status_code == 428
    refused = admin.call("PUT", path, body, If_Match="*")
    assert (refused.status_code, refused.json()["code"]) == (412, "precondition_failed")
    assert admin.call("PUT", path, body, If_None_Match="*").status_code == 201
    again = admin.call("PUT", path, body, If_None_Match="*")
    assert (again.status_code, again["ETag"]) == (412, '"1"')
    assert admin.call("PUT", path, body, If_Match="*").status_code == 200


def test_a_label_move_needs_its_expected_version(admin: Api, grown: Deck) -> None:
    at = f"{LABELS}/canary"
    problem(admin.call("PUT", at, {"version": 1}), 428, "precondition_required")
    good(admin.call("PUT", at, {"version": 1, "expected": None}), 201)
    for body in ({"version": 2, "expected": None}, {"version": 2, "expected": 3}):
        problem(admin.call("PUT", at, body), 412, "precondition_failed")
    problem(admin.call("PUT", at, {"version": 2}, If_Match='"7"'), 412, "precondition_failed")
    assert good(admin.get(at))["version"] == 1


def test_what_is_no_version_of_the_prompt_is_refused(admin: Api, grown: Deck, elsewhere_deck: Deck) -> None:
    at, foreign = f"{LABELS}/canary", elsewhere_deck.version(2).digest
    for name in (4, foreign, "0" * 64):
        body = problem(admin.call("PUT", at, {"version": name, "expected": None}), 422, "invalid")
        assert body["errors"] == [{"detail": "Version not found.", "pointer": "/version"}]
        body = problem(admin.call("PUT", at, {"version": 1, "expected": name}), 422, "invalid")
        assert body["errors"][0]["pointer"] == "/expected"
        body = problem(admin.post(f"{LABELS}/production:rollback", {"note": "x", "to": name}), 422)
        assert body["errors"][0]["pointer"] == "/to"
    for name in (0, -1, True, "v1", 2**40):
        problem(admin.call("PUT", at, {"version": name, "expected": None}), 422, "invalid")


def test_production_goes_back_and_follows_again(admin: Api, bot: Api, grown: Deck) -> None:
    problem(admin.call("PUT", f"{LABELS}/production", {"version": 1, "expected": 3}), 403, "not_allowed")
    problem(admin.call("PUT", f"{LABELS}/latest", {"version": 1, "expected": None}), 403, "not_allowed")
    problem(admin.call("DELETE", f"{LABELS}/production", If_Match='"3"'), 403, "not_allowed")
    problem(admin.post(f"{LABELS}/production:rollback", {"note": " "}), 422, "invalid")
    assert good(admin.post(f"{LABELS}/production:rollback", {"note": "Too kind"}))["version"] == 2
    assert good(admin.post(f"{LABELS}/production:rollback", {"note": "x", "to": 1}))["version"] == 1
    assert good(admin.get("prompts?agent=pilot"))["items"][0]["is_pinned"] is True
    for action, body in (("unpin", None), ("rollback", {"note": "x"})):
        problem(bot.post(f"{LABELS}/production:{action}", body), 403, "out_of_scope")
    assert good(admin.post(f"{LABELS}/production:unpin"))["version"] == 3
    assert good(admin.get("prompts?agent=pilot"))["items"][0]["is_pinned"] is False
    assert admin.post(f"{LABELS}/canary:rollback", {"note": "x"}).status_code == 404


def test_protected_labels_are_for_owners(
    admin: Api, grown: Deck, key_for: Callable[..., Api], bob: User
) -> None:
    editor = key_for(grown.workspace, bob)
    problem(editor.post("labels/canary:protect", {"is_protected": True}), 403, "out_of_scope")
    rule = good(admin.post("labels/canary:protect", {"is_protected": True}))
    assert rule == {"name": "canary", "prompts": 0, "is_protected": True}
    assert [row["name"] for row in good(editor.get("labels"))["items"]] == ["production", "canary"]
    body = {"version": 1, "expected": None}
    problem(editor.call("PUT", f"{LABELS}/canary", body), 403, "not_allowed")
    good(admin.call("PUT", f"{LABELS}/canary", body), 201)
    assert LabelRule.objects.in_workspace(grown.workspace).get().is_protected


def test_keys_stay_within_their_scopes(
    bot: Api, narrow: Api, grown: Deck, scoped: Callable[..., Api]
) -> None:
    body = {"version": 1, "expected": None}
    problem(bot.call("PUT", f"{LABELS}/canary", body), 403, "out_of_scope")
    problem(bot.call("DELETE", f"{LABELS}/canary", If_Match="*"), 403, "out_of_scope")
    problem(bot.post("labels/canary:protect", {"is_protected": True}), 403, "out_of_scope")
    for method, address, payload in (
        ("GET", LABELS, None),
        ("GET", f"{LABELS}/production", None),
        ("GET", f"{LABELS}/production/moves", None),
        ("PUT", f"{LABELS}/canary", body),
        ("DELETE", f"{LABELS}/production", None),
        ("POST", f"{LABELS}/production:rollback", {"note": "x"}),
        ("POST", f"{LABELS}/production:unpin", None),
    ):
        problem(narrow.call(method, address, payload, If_Match="*"), 404, "not_found")
    problem(narrow.get("labels"), 403, "out_of_scope")
    problem(narrow.post("labels/canary:protect", {"is_protected": True}), 403, "out_of_scope")
    canaries = scoped(labels=["canary"])
    good(canaries.call("PUT", f"{LABELS}/canary", body), 201)
    problem(canaries.call("PUT", f"{LABELS}/other", body), 403, "out_of_scope")
    problem(canaries.post(f"{LABELS}/production:rollback", {"note": "x"}), 403, "out_of_scope")
    names = PromptLabel.objects.in_workspace(grown.workspace).filter(prompt=grown.prompt())
    assert set(names.values_list("name", flat=True)) == {"canary", "production"}


def test_a_reviewed_agent_is_not_moved_past_its_reviewers(admin: Api, grown: Deck) -> None:
    Agent.objects.in_workspace(grown.workspace).filter(slug="pilot").update(release_policy="reviewed")
    good(admin.post(f"{LABELS}/production:rollback", {"note": "Back"}))
    problem(admin.post(f"{LABELS}/production:unpin"), 403, "not_allowed")
