"""Preview, impact and settings API: the numbers of the page, and nothing is stored."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.db.models import Count
from django.test.utils import CaptureQueriesContext

from prompts.models import AgentPrompt, PromptSettings, PromptVersion
from prompts.publishing.preview import impact_api
from prompts.publishing.preview.drafts import build_draft, list_affected_agents
from prompts.publishing.preview.impact import Impact, compute_impact
from prompts.publishing.versions.selectors import get_version_text
from tests.api_client import Api
from tests.factories import make_channel, make_memory, make_skill, make_soul, make_tool
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
from tests.seeds.product import run_commit_hooks

pytestmark = pytest.mark.django_db
PILOT = {"agent": "pilot", "channel": "deck"}


def soul_of(deck: Deck, **values: Any) -> dict[str, Any]:
    return {"kind": "soul", "key": deck.soul.slug, "values": values}


def test_impact_has_the_numbers_of_the_page(admin: Api, deck: Deck) -> None:
    body = good(admin.post("impact", soul_of(deck, text="Be wise and brave.")))
    draft = build_draft(deck.soul, {"text": "Be wise and brave."})
    page = compute_impact(deck.workspace, draft, list_affected_agents(deck.soul, draft))
    assert (body["prompts"], body["agents"], body["distinct_diffs"]) == (2, 2, 1)
    assert body["token_delta"] == page.token_delta
    assert body["invalidated_cache_prefixes"] == page.invalidated_cache_prefixes
    assert body["rewritten_tokens"] == page.rewritten_tokens
    [change] = body["groups"][0]["changes"]
    assert [(line["kind"], line["text"]) for line in change["lines"]] == [
        ("removed", "Be brave."),
        ("added", "Be wise and brave."),
    ]
    assert good(admin.post("impact", soul_of(deck, text="Be brave.")))["unchanged"] == 2


def test_a_preview_is_what_a_build_would_give(admin: Api, deck: Deck) -> None:
    plain = good(admin.post("preview", PILOT))
    assert (plain["text"], plain["digest"]) == (get_version_text(deck.version(1)), deck.version(1).digest)
    body = good(admin.post("preview", {**PILOT, "record": soul_of(deck, text="Be wise.")}))
    assert "Be wise." in body["text"]
    # The digest has a salt, which a text gets when it is stored.
    assert body["digest"] is None
    deck.reword("Be wise.")
    stored = good(admin.post("preview", PILOT))
    assert (stored["text"], stored["text_digest"]) == (body["text"], body["text_digest"])
    assert stored["digest"] == deck.version(2).digest
    other = good(admin.post("preview", {**PILOT, "layout": "nova"}))
    assert (other["layout"], other["text"] == plain["text"]) == ("nova", False)


def test_asking_stores_nothing(admin: Api, deck: Deck) -> None:
    for path, body in (
        ("preview", {**PILOT, "record": soul_of(deck, text="Be wise.")}),
        ("impact", soul_of(deck, text="Be wise.")),
    ):
        with CaptureQueriesContext(connection) as queries:
            good(admin.post(path, body))
        written = [q["sql"] for q in queries if q["sql"].startswith(("INSERT", "UPDATE", "DELETE"))]
        assert not [sql for sql in written if "personas_apikey" not in sql]
    deck.soul.refresh_from_db()
    assert deck.soul.text == "Be brave."
    assert PromptVersion.objects.in_workspace(deck.workspace).count() == 2


FEW_KINDS: list[dict[str, Any]] = [
    {"kind": "agent", "key": "pilot", "values": {"tools": ["read"]}},
    {"kind": "channel", "key": "deck", "values": {"name": "Upper deck"}},
    {"kind": "identity", "values": {"name": "Fox"}},
    {"kind": "memory", "values": {"text": "Has a cat.", "agent": "pilot"}},
    {"kind": "responsibility", "values": {"title": "Steer", "text": "Well.", "agent": "pilot"}},
    {"kind": "skill", "key": "knots", "values": {"description": "Ties other knots."}},
    {"kind": "tool", "key": "read", "values": {"description": "Reads."}},
]
MORE_KINDS: list[dict[str, Any]] = [
    {"kind": "agent", "key": "pilot", "values": {"channels": ["deck", "bridge"]}},
    {"kind": "agent", "values": {"slug": "new", "name": "New"}},
    {"kind": "memory", "key": "tea", "values": {"text": "Likes coffee."}},
    {
        "kind": "skill",
        "values": {"name": "sails", "description": "Sets sails.", "body": "Up.", "agents": ["cook"]},
    },
    {"kind": "user_profile", "values": {"name": "Guest", "display_name": "Gus"}},
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "bodies", [FEW_KINDS, pytest.param(MORE_KINDS, marks=pytest.mark.hard)], ids=["few", "more"]
)
def test_every_kind_of_record_can_be_drafted(admin: Api, deck: Deck, bodies: list[dict[str, Any]]) -> None:
    memory = make_memory(deck.workspace, "Likes tea.")
    make_skill(deck.workspace, "knots", for_all_agents=True)
    make_tool(deck.workspace, "read")
    make_channel(deck.workspace, "bridge")
    deck.build()
    for one in bodies:
        body = one | ({"key": memory.pk} if one.get("key") == "tea" else {})
        result = good(admin.post("impact", body))
        good(admin.post("preview", {**PILOT, "record": body}))
        if body["kind"] in ("memory", "responsibility", "skill"):
            assert result["prompts"], body
    result = good(admin.post("impact", {"kind": "agent", "key": "pilot", "values": {"channels": ["bridge"]}}))
    assert (result["new"], result["removed"]) == ([{"agent": "pilot", "channel_name": "Bridge"}], [PILOT])


@pytest.mark.parametrize("path", ["impact", pytest.param("preview", marks=pytest.mark.hard)])
def test_values_are_validated_by_the_schema_of_their_record(
    path: str, admin: Api, deck: Deck, elsewhere_deck: Deck
) -> None:
    foreign = make_soul(elsewhere_deck.workspace, name="Foreign")
    abroad = make_memory(elsewhere_deck.workspace, "Foreign.")
    memory = make_memory(deck.workspace)
    for body, pointer in (
        ({"kind": "soul", "key": "no-such", "values": {}}, "/key"),
        ({"kind": "soul", "key": foreign.slug, "values": {}}, "/key"),
        ({"kind": "soul", "key": 1, "values": {}}, "/key"),
        ({"kind": "memory", "key": abroad.pk, "values": {}}, "/key"),
        ({"kind": "memory", "key": abroad.pk + 100_000, "values": {}}, "/key"),
        ({"kind": "memory", "key": "one", "values": {}}, "/key"),
        ({"kind": "task", "values": {}}, "/kind"),
        (soul_of(deck, text=7), "/values/text"),
        (soul_of(deck, colour="red"), "/values/colour"),
        ({"kind": "soul", "values": {}}, "/values/name"),
        ({"kind": "agent", "key": "pilot", "values": {"soul": foreign.slug}}, "/values/soul"),
        ({"kind": "agent", "key": "pilot", "values": {"tools": ["no-such"]}}, "/values/tools"),
        ({"kind": "memory", "key": memory.pk, "values": {"agent": "no-such"}}, "/values/agent"),
        ({"kind": "user_profile", "values": {"name": "G", "timezone": "Moon/Far"}}, "/values/timezone"),
    ):
        payload, prefix = (body, "") if path == "impact" else ({**PILOT, "record": body}, "/record")
        result = problem(admin.post(path, payload), 422, "invalid")
        assert f"{prefix}{pointer}" in [error.get("pointer") for error in result["errors"]], (body, result)


def test_a_preview_is_of_a_prompt_and_a_layout_that_are_here(admin: Api, deck: Deck) -> None:
    wrong = {"kind": "soul", "values": {}}
    for payload, pointer in (
        ({"agent": "no-such", "channel": "deck"}, "/agent"),
        ({"agent": "pilot", "channel": "no-such"}, "/channel"),
        ({**PILOT, "layout": "baroque"}, "/layout"),
        ({**PILOT, "record": wrong}, "/record/values/name"),
    ):
        assert problem(admin.post("preview", payload), 422)["errors"][0]["pointer"] == pointer


def test_only_those_who_edit_may_ask(bot: Api, narrow: Api, deck: Deck, scoped: Callable[..., Api]) -> None:
    problem(bot.post("impact", soul_of(deck, text="x")), 403, "out_of_scope")
    problem(bot.post("preview", PILOT), 403, "out_of_scope")
    assert problem(narrow.post("preview", PILOT), 422)["errors"][0]["pointer"] == "/agent"
    good(narrow.post("preview", {"agent": "cook", "channel": "deck"}))
    problem(narrow.post("impact", soul_of(deck, text="x")), 403, "out_of_scope")
    shared = make_memory(deck.workspace, "Likes tea.")
    body = good(narrow.post("impact", {"kind": "memory", "key": shared.pk, "values": {"text": "Likes gin."}}))
    assert {one["agent"] for group in body["groups"] for one in group["prompts"]} <= {"cook"}
    channelled = scoped(channels=["deck"])
    problem(channelled.post("impact", soul_of(deck, text="x")), 403, "out_of_scope")


@pytest.mark.slow
def test_settings_are_set_level_by_level(admin: Api, bot: Api, deck: Deck) -> None:
    empty = admin.get("prompt-settings/workspace")
    assert (good(empty)["revision"], empty["ETag"][:2]) == (0, '"0')
    put = admin.call(
        "PUT", "prompt-settings/workspace", {"token_budget": 900, "entry": "full"}, If_Match='"0"'
    )
    assert (good(put)["token_budget"], good(put)["entry"], put["ETag"]) == (900, "full", '"1"')
    again = admin.call("PUT", "prompt-settings/workspace", {"soul": deck.soul.slug}, If_Match='"1"')
    assert (good(again)["token_budget"], good(again)["soul"]) == (None, deck.soul.slug)
    problem(admin.call("PUT", "prompt-settings/workspace", {}), 428, "precondition_required")
    problem(admin.call("PUT", "prompt-settings/workspace", {}, If_Match='"1"'), 412, "precondition_failed")
    good(admin.call("PUT", "prompt-settings/agents/pilot", {"mission": "Land."}, If_Match='"0"'))
    good(admin.call("PUT", "prompt-settings/channels/deck", {"native_tools": True}, If_Match='"0"'))
    levels = good(admin.get("prompt-settings"))["items"]
    assert {row["level"] for row in levels} == {"workspace", "agent", "channel"}
    problem(bot.call("PUT", "prompt-settings/workspace", {}, If_Match="*"), 403, "out_of_scope")


def test_settings_link_to_what_is_here(admin: Api, narrow: Api, deck: Deck, elsewhere_deck: Deck) -> None:
    foreign = make_soul(elsewhere_deck.workspace, name="Foreign")
    for name in (foreign.slug, "no-such"):
        result = problem(admin.call("PUT", "prompt-settings/workspace", {"soul": name}, If_Match='"0"'), 422)
        assert result["errors"] == [{"detail": "Record not found.", "pointer": "/soul"}]
    body = {"soul": deck.soul.slug}
    problem(admin.call("PUT", "prompt-settings/agents/pilot", body, If_Match='"0"'), 422, "invalid")
    for address in ("agents/no-such", "channels/no-such"):
        problem(admin.get(f"prompt-settings/{address}"), 404, "not_found")
    problem(narrow.get("prompt-settings/agents/pilot"), 404, "not_found")
    good(narrow.get("prompt-settings/agents/cook"))
    for address in ("", "/workspace", "/channels/deck"):
        problem(narrow.get(f"prompt-settings{address}"), 403, "out_of_scope")
    assert not PromptSettings.objects.in_workspace(deck.workspace).exists()


# --- new records ---------------------------------------------------------------------------------------


def count_versions(deck: Deck) -> dict[tuple[str, str], int]:
    """Return the number of versions of each live prompt."""
    rows = AgentPrompt.objects.in_workspace(deck.workspace).filter(is_active=True)
    names = rows.annotate(count=Count("versions")).values_list("agent__slug", "channel__slug", "count")
    return {(agent, channel): count for agent, channel, count in names}


NEW_RECORDS: dict[str, tuple[str, dict[str, Any]]] = {
    "agent": ("agents", {"slug": "fresh", "name": "Fresh", "layout": "nova", "channels": ["deck", "mast"]}),
    "agent without a channel": ("agents", {"slug": "idle", "name": "Idle"}),
    "agent with a parent": (
        "agents",
        {"slug": "mate", "name": "Mate", "parent": "pilot", "channels": ["deck"]},
    ),
    "skill for all agents": (
        "skills",
        {"name": "knots", "description": "Ties.", "body": "Tie.", "for_all_agents": True},
    ),
    "skill of an agent": (
        "skills",
        {"name": "sails", "description": "Sets.", "body": "Set.", "agents": ["pilot"]},
    ),
    "skill of nobody": ("skills", {"name": "oars", "description": "Rows.", "body": "Row."}),
    "shared memory": ("memories", {"text": "The tide turns at noon."}),
    "memory of an agent": ("memories", {"text": "The mast creaks.", "agent": "pilot"}),
    "responsibility": ("responsibilities", {"title": "Watch", "text": "At night.", "agent": "pilot"}),
    "channel": ("channels", {"slug": "stern", "name": "Stern", "formatting": "Shout."}),
    "tool": ("tools", {"name": "winch", "description": "Pulls."}),
    "identity": ("identities", {"name": "Gull"}),
    "soul": ("souls", {"name": "Storm", "text": "Roar."}),
    "user profile": ("user-profiles", {"name": "Captain"}),
}


@pytest.mark.parametrize("case", NEW_RECORDS)
def test_impact_of_a_new_record_is_what_creating_it_does(admin: Api, deck: Deck, case: str) -> None:
    make_channel(deck.workspace, "mast")
    collection, values = NEW_RECORDS[case]
    kind = {"memories": "memory", "identities": "identity", "responsibilities": "responsibility"}.get(
        collection, collection.removesuffix("s").replace("-", "_")
    )
    body = good(admin.post("impact", {"kind": kind, "values": values}))
    before = count_versions(deck)
    answer = admin.post(collection, values)
    assert answer.status_code == 201, answer.content
    run_commit_hooks()
    after = count_versions(deck)
    added = sorted(agent for agent, _channel in set(after) - set(before))
    changed = [name for name in before if after[name] > before[name]]
    assert sorted(one["agent"] for one in body["new"]) == added
    assert body["prompts"] == len(changed)
    if case == "agent":
        assert [one["channel_name"] for one in body["new"]] == ["Deck", "Mast"]


@pytest.mark.planted
def test_an_impact_without_new_agents_is_detected(
    admin: Api, deck: Deck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(impact_api, "compute_impact", lambda *_: Impact())
    with pytest.raises(AssertionError):
        test_impact_of_a_new_record_is_what_creating_it_does(admin, deck, "agent")
