"""The Studio: what is shown while somebody writes is what saving stores; drafts are their writer's own."""

import json
import re
from html.parser import HTMLParser
from itertools import cycle
from typing import Any

import pytest
from django.test import Client

from personas.api_keys.services import create_key
from personas.drafts.services import DraftChanged, DraftLimitExceeded, apply_draft, list_drafts, store_draft
from personas.errors import DomainError
from personas.members.services import remove_member
from personas.models import (
    KeptDraft,
    Membership,
    Memory,
    ReleasePolicy,
    Responsibility,
    Revision,
    Soul,
    User,
)
from personas.records.services import edit_record
from personas.roles import Role
from prompts.erasure.services import erase_record
from prompts.models import PromptLabel, PromptSettings, PromptVersion
from prompts.versions.selectors import get_version_text
from skills.models import AgentContext
from tests.factories import (
    BY,
    join,
    make_channel,
    make_memory,
    make_profile,
    make_responsibility,
    make_skill,
    make_source,
    make_task,
    make_tool,
    make_user,
    make_workspace,
    refreshed,
    signed_in,
)
from tests.personas.api.prompts_stage import Deck, a_foreign_deck  # noqa: F401  # fixtures
from tests.personas.api.shared_deck import (  # noqa: F401  # fixtures
    ashore,
    shared_alice,
    shared_bob,
    shared_deck,
    shared_workspace,
)

pytestmark = pytest.mark.django_db
HERE = "/w/harbour/studio/pilot/"
SOUL = "souls:calm"
HTMX: dict[str, Any] = {"HTTP_HX_REQUEST": "true"}
# A guard against growth with the number of rows, not a goal.
MOST_QUERIES = 25


def at(verb: str = "", part: str = SOUL, **more: str) -> str:
    said = "&".join(f"{name}={value}" for name, value in {"part": part, **more}.items())
    return f"{HERE}{verb}{'/' if verb else ''}?{said}"


def typed(text: str = "Be wise.", **more: Any) -> dict[str, Any]:
    return {"label": "Calm", "text": text, "revision": "1"} | more


def shown_in(answer: Any) -> Any:
    assert answer.status_code == 200, answer.content.decode()[:2_000]
    return answer.context["preview"]


class Words(HTMLParser):
    """The text between tags, as a reader gets it."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def handle_data(self, data: str) -> None:
        self.said.append(data)


def read(answer: Any) -> str:
    words = Words()
    words.feed(answer.content.decode())
    return " ".join(" ".join(words.said).split())


# --- the preview ---------------------------------------------------------------------------------------


def test_the_preview_is_what_saving_then_stores_byte_for_byte(deck: Deck, as_alice: Client) -> None:
    shown = shown_in(as_alice.post(at("preview"), typed("Be wise.\r\nAnd kind."), **HTMX))
    assert PromptVersion.objects.in_workspace(deck.workspace).count() == 2
    deck.reword("Be wise.\nAnd kind.")
    stored = deck.version(2)
    assert shown.text.encode() == get_version_text(stored).encode()
    assert (shown.tokens, shown.sizes) == (stored.tokens, stored.sizes)


@pytest.mark.hard
def test_so_it_is_for_every_kind_of_part(deck: Deck, as_alice: Client) -> None:
    workspace, pilot = deck.workspace, deck.agents[0]
    first = make_memory(workspace, "Likes tea.")
    make_memory(workspace, "Has a cat.")
    duty = make_responsibility(pilot, "Steer")
    make_responsibility(pilot, "Dock")
    tool = make_tool(workspace, "read", description="Reads.")
    make_skill(workspace, "knots-b", for_all_agents=True)
    skill = make_skill(workspace, "knots", for_all_agents=True)
    edit_record(pilot, {"tools": [tool]}, expected=pilot.revision, by=BY)
    deck.build()
    parts: dict[str, dict[str, Any]] = {
        f"memories:{first.pk}": {"text": "Likes coffee."},
        "memories:": {"text": "Owns a boat.", "state": "active"},
        f"responsibilities:{duty.pk}": {"title": "Steer", "text": "Straight ahead."},
        "responsibilities:": {"title": "Sing", "text": "Softly.", "agent": pilot.pk},
        "tools:read": {"name": "read", "description": "Reads aloud."},
        f"skills:{skill.name}": {
            "name": "knots",
            "description": "Other knots.",
            "body": "Tie.",
            "for_all_agents": "on",
        },
        "channels:deck": {"name": "Upper deck", "formatting": "No tables."},
        "agents:pilot": {
            "name": "Pilot",
            "instructions": "Mind the rocks.",
            "layout": "nova",
            "release_policy": "automatic",
        },
    }
    for part, values in parts.items():
        values["revision"] = as_alice.get(at(part=part)).context["open_part"].base_revision
        told = shown_in(as_alice.post(at("preview", part), values, **HTMX)).text
        assert as_alice.post(at("review", part), values).status_code == 302
        answer = as_alice.post(at("review", part), {"apply": "1"})
        assert answer.status_code == 302, (part, read(answer))
        deck.build()
        latest = deck.prompt().latest
        assert latest is not None
        assert told == get_version_text(latest), part


def test_what_is_new_is_lit_and_every_stretch_says_whose_it_is(deck: Deck, as_alice: Client) -> None:
    deck.reword("Be brave.\nBe calm.")
    answer = as_alice.post(at("preview"), typed("Be brave.\nBe very calm.", revision="2"), **HTMX)
    html = answer.content.decode()
    [lit] = re.findall(r'<span class="dr-stretch dr-seg is-soul is-edited"[^>]*>([^<]*)</span>', html)
    assert lit.strip() == "Be very calm."
    assert 'data-part="souls:calm"' in html
    assert "revision 3, you, not saved yet" in html
    plain = as_alice.post(at("preview"), typed("Be brave.\nBe calm.", revision="2"), **HTMX)
    assert "is-edited" not in plain.content.decode()
    gone = as_alice.post(at("preview"), typed("Be calm.", revision="2"), **HTMX)
    assert "1 line gone" in read(gone)


def test_another_layout_and_channel_are_shown_as_asked(deck: Deck, as_alice: Client) -> None:
    pilot = deck.agents[0]
    channels = [make_channel(deck.workspace, "bridge", formatting="Short."), deck.prompt().channel]
    edit_record(pilot, {"channels": channels}, expected=pilot.revision, by=BY)
    deck.build()
    body = typed() | {"view-channel": "bridge", "view-layout": "nova"}
    shown = shown_in(as_alice.post(at("preview"), body, **HTMX))
    assert (shown.layout, "Short." in shown.text or shown.layout == "nova") == ("nova", True)
    page = as_alice.get(at(channel="bridge", layout="nova"))
    assert page.context["location"].channel == "bridge"
    assert shown_in(page).layout == "nova"
    assert shown_in(as_alice.get(at(channel="no-such", layout="no-such"))).layout == "dramatis"
    table = as_alice.post(at("layouts"), typed(), **HTMX)
    assert [row.name for row in table.context["rows"]] == ["dramatis", "opal", "pi", "moltis", "nova", "ptc"]
    assert all(row.tokens for row in table.context["rows"])


def test_a_mistake_is_told_at_its_field_and_the_last_good_prompt_stays(deck: Deck, as_alice: Client) -> None:
    answer = as_alice.post(at("preview"), typed(label=""), **HTMX)
    assert (answer.status_code, answer["HX-Reswap"]) == (422, "none")
    html = answer.content.decode()
    assert re.search(
        r'id="id_label_mistake"[^>]*hx-swap-oob="true">.*?This field is required', html, re.DOTALL
    )
    assert re.search(r'id="id_text_mistake"[^>]*hx-swap-oob="true"></div>', html)
    tool = make_tool(deck.workspace, "read")
    bad = as_alice.post(at("preview", "tools:read"), {"name": tool.name, "parameters": "{"}, **HTMX)
    assert bad.status_code == 422
    assert re.search(r'id="id_parameters_mistake"[^>]*>\s*<ul', bad.content.decode())
    good = as_alice.post(at("preview"), typed(), **HTMX)
    assert re.search(r'id="id_label_mistake"[^>]*hx-swap-oob="true"></div>', good.content.decode())


def test_nothing_is_stored_by_looking(
    deck: Deck, as_alice: Client, django_assert_max_num_queries: Any
) -> None:
    as_alice.get(at())
    with django_assert_max_num_queries(MOST_QUERIES) as queries:
        as_alice.post(at("preview"), typed(), **HTMX)
    written = [
        q["sql"] for q in queries.captured_queries if q["sql"].startswith(("INSERT", "UPDATE", "DELETE"))
    ]
    assert not [sql for sql in written if "django_session" not in sql]
    assert not KeptDraft.objects.in_workspace(deck.workspace).exists()


def test_the_page_reads_what_is_stored_and_asks_little(
    deck: Deck, as_alice: Client, django_assert_max_num_queries: Any
) -> None:
    assert shown_in(as_alice.get(at())).text == get_version_text(deck.version(1))
    for number in range(4):
        make_memory(deck.workspace, f"Fact {number}.")
    deck.build()
    with django_assert_max_num_queries(MOST_QUERIES):
        assert "Fact 3." in read(as_alice.get(at()))
    memory = Memory.objects.in_workspace(deck.workspace).order_by("pk").first()
    for part in ("agents:pilot", "channels:deck", f"memories:{memory.pk if memory else 0}"):
        with django_assert_max_num_queries(MOST_QUERIES):
            assert as_alice.get(at(part=part)).status_code == 200


def test_a_draft_asks_as_little_whatever_the_prompt_is_made_of(
    deck: Deck, as_alice: Client, django_assert_max_num_queries: Any
) -> None:
    workspace, pilot = deck.workspace, deck.agents[0]
    make_memory(workspace, "Likes tea.", agent=pilot)
    make_responsibility(pilot, "Steer")
    make_skill(workspace, "knots", agents=[pilot])
    make_skill(workspace, "maps", for_all_agents=True)
    tool = make_tool(workspace, "read", description="Reads.")
    edit_record(pilot, {"tools": [tool]}, expected=1, by=BY)
    PromptSettings(workspace=workspace, token_budget=3_000).save()
    deck.build()
    as_alice.post(at("save"), typed(), **HTMX)
    # The first page of all notes when somebody came.
    as_alice.get(at())
    with django_assert_max_num_queries(MOST_QUERIES):
        told = read(as_alice.get(at()))
    for words in ("Be wise.", "Likes tea.", "Steer", "knots", "maps"):
        assert words in told
    for verb in ("preview", "layouts"):
        with django_assert_max_num_queries(MOST_QUERIES, info=verb):
            assert as_alice.post(at(verb), typed(), **HTMX).status_code == 200
    with django_assert_max_num_queries(MOST_QUERIES):
        assert as_alice.get(at("review")).status_code == 200


@pytest.mark.hard
def test_a_review_asks_as_little_where_agents_read_files_and_somebody_must_agree(
    deck: Deck, as_alice: Client, bob: Any, tmp_path: Any, django_assert_max_num_queries: Any
) -> None:
    workspace, cook = deck.workspace, deck.agents[1]
    Membership.objects.in_workspace(workspace).filter(user=bob).update(role=Role.ADMIN)
    edit_record(cook, {"release_policy": ReleasePolicy.REVIEWED}, expected=1, by=BY)
    (tmp_path / "AGENTS.md").write_text("Knock first.", encoding="utf-8")
    source = make_source(workspace, tmp_path)
    refreshed(source)
    for agent in deck.agents:
        AgentContext(workspace=workspace, agent=agent, source=source, harness="pi").save()
    make_skill(workspace, "knots", agents=[cook])
    deck.build()
    as_alice.post(at("save"), typed(), **HTMX)
    as_alice.get(at("review"))
    with django_assert_max_num_queries(MOST_QUERIES):
        review = as_alice.get(at("review"))
    assert review.context["review"].prompts == len(deck.agents)
    assert [row.user for row in review.context["approvers"]] == [bob]


def test_what_is_saved_and_not_built_yet_is_assembled(deck: Deck, as_alice: Client) -> None:
    edit_record(deck.soul, {"text": "Be new."}, expected=1, by=BY)
    assert "Be new." in shown_in(as_alice.get(at())).text


def test_budget_cache_and_findings_are_told(deck: Deck, as_alice: Client) -> None:
    PromptSettings(workspace=deck.workspace, token_budget=3).save()
    answer = as_alice.post(at("preview"), typed("Be wise.\u202e"), **HTMX)
    said = read(answer)
    assert "of a budget of 3" in said
    assert "over the budget" in said
    assert "stay the same from call to call" in said
    assert "Flagged in what you typed" in said
    assert "dr-glyph" in answer.content.decode()


def test_slots_are_filled_as_the_render_call_fills_them(deck: Deck, as_alice: Client, by_alice: Any) -> None:
    pilot = deck.agents[0]
    profile = make_profile(deck.workspace, timezone="Asia/Tokyo")
    edit_record(pilot, {"user_profile": profile}, expected=pilot.revision, by=BY)
    deck.build()
    task = make_task(
        deck.workspace, "Splice the rope", agent=pilot, steps=[{"title": "Cut", "is_done": True}]
    )
    _, secret = create_key(deck.workspace, name="Bot", scopes={}, by=by_alice)
    said = {"now": "2026-11-15T09:30:00+00:00", "task": task.number, "is_background": True}
    said |= {"host": {"os": "linux"}, "sandbox": {"enabled": True}, "channel": "deck"}
    answer = Client().post(
        "/api/v1/agents/pilot/prompt:render",
        json.dumps(said),
        content_type="application/json",
        HTTP_AUTHORIZATION=f"Bearer {secret}",
    )
    served = json.loads(answer.content)["text"]
    slots = {"slot-now": "2026-11-15T09:30", "slot-task": str(task.number), "slot-is_background": "on"}
    slots["slot-facts"] = "os=linux\nsandbox.enabled=true\n"
    page = as_alice.get(at(), slots | {"part": SOUL})
    assert shown_in(page).text == served
    drafted = shown_in(as_alice.post(at("preview"), typed("Be brave.") | slots, **HTMX))
    assert drafted.text == served
    assert "⟦" in shown_in(as_alice.get(at())).text
    assert "⟦" not in shown_in(as_alice.get(at(), {"slot-fill": "on", "part": SOUL})).text
    wrong = as_alice.get(at(), {"slot-task": "99", "slot-facts": "nonsense", "slot-timezone": "Mars"})
    assert read(wrong).count("Not filled in") == 1
    assert {"task", "facts", "timezone"} <= set(wrong.context["slots"].errors)


# --- drafts --------------------------------------------------------------------------------------------


def test_a_draft_is_kept_for_its_writer_alone_and_can_be_discarded(
    deck: Deck, as_alice: Client, as_bob: Client, alice: Any
) -> None:
    saved = as_alice.post(at("save"), typed("My secret thought."), **HTMX)
    assert (saved.status_code, "Draft saved" in read(saved)) == (200, True)
    page = as_alice.get(at())
    assert "My secret thought." in read(page)
    assert "Your draft, kept" in read(page)
    assert "My secret thought." in shown_in(page).text
    for address in (at(), at("review"), "/w/harbour/drafts/", "/w/harbour/studio/"):
        assert "secret thought" not in as_bob.get(address).content.decode()
    deck.soul.refresh_from_db()
    assert deck.soul.text == "Be brave."
    [draft] = list_drafts(deck.workspace, alice)
    assert "Calm" in read(as_alice.get("/w/harbour/drafts/"))
    assert draft.part == SOUL
    theirs = as_bob.post("/w/harbour/drafts/discard/", {"part": SOUL}, follow=True)
    assert "There is no such draft any more" in read(theirs)
    assert list_drafts(deck.workspace, alice).count() == 1
    mine = as_alice.post("/w/harbour/drafts/discard/", {"part": SOUL, "back": "studio"})
    assert mine["Location"].startswith(HERE)
    assert not list_drafts(deck.workspace, alice)
    assert "Your draft, kept" not in read(as_alice.get(at()))


def test_what_could_not_be_saved_is_kept_all_the_same(deck: Deck, as_alice: Client) -> None:
    assert as_alice.post(at("save"), typed("Half a", label="")).status_code == 302
    page = as_alice.get(at())
    assert "Half a" in read(page)
    assert "This field is required" in read(page)
    assert shown_in(page).text == get_version_text(deck.version(1))
    review = as_alice.get(at("review"))
    assert "This draft cannot be saved yet" in read(review)
    refused = as_alice.post(at("review"), {"apply": "1"})
    assert refused.status_code == 422
    deck.soul.refresh_from_db()
    assert deck.soul.revision == 1


def test_drafts_are_bounded(deck: Deck, by_alice: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("personas.drafts.services.MAX_DRAFTS", 3)
    with pytest.raises(DraftLimitExceeded):
        store_draft(deck.workspace, "souls", deck.soul, {"text": ["x" * 400_001]}, key="calm", by=by_alice)
    for number in range(3):
        store_draft(deck.workspace, "souls", None, {"text": ["x"]}, key=str(number), by=by_alice)
    with pytest.raises(DraftLimitExceeded):
        store_draft(deck.workspace, "souls", None, {"text": ["x"]}, key="more", by=by_alice)
    store_draft(deck.workspace, "souls", None, {"text": ["y"]}, key="1", by=by_alice)


def test_an_erasure_takes_drafts_with_the_words_along(deck: Deck, by_alice: Any, alice: Any) -> None:
    words = "Mrs Penhaligon keeps a spare key."
    memory = make_memory(deck.workspace, words)
    other = make_memory(deck.workspace, "Likes tea.")
    for key, text in ((memory.pk, "Mrs P. keeps something."), (other.pk, f"Note: {words}\r\n")):
        store_draft(deck.workspace, "memories", None, {"text": [text]}, key=str(key), by=by_alice)
    store_draft(deck.workspace, "souls", deck.soul, {"text": ["Unrelated."]}, key="calm", by=by_alice)
    erase_record(memory, reason="She asked.", by=by_alice)
    assert [draft.part for draft in list_drafts(deck.workspace, alice)] == [SOUL]


def test_a_removed_member_leaves_no_drafts(deck: Deck, as_bob: Client, bob: Any, by_alice: Any) -> None:
    as_bob.post(at("save"), typed("Bob's own."))
    assert list_drafts(deck.workspace, bob).count() == 1
    membership = bob.memberships.get(workspace=deck.workspace)
    remove_member(membership, by=by_alice)
    assert as_bob.get(at()).status_code == 404
    join(deck.workspace, bob)
    assert "Bob's own." not in as_bob.get(at()).content.decode()


# --- review --------------------------------------------------------------------------------------------


def test_the_review_has_the_numbers_of_the_impact_api(deck: Deck, as_alice: Client, by_alice: Any) -> None:
    _, secret = create_key(deck.workspace, name="Admin", kind="admin", scopes={}, by=by_alice)
    said = {"kind": "soul", "key": "calm", "values": {"text": "Be wise and brave."}}
    answer = Client().post(
        "/api/v1/impact",
        json.dumps(said),
        content_type="application/json",
        HTTP_AUTHORIZATION=f"Bearer {secret}",
    )
    told = json.loads(answer.content)
    assert as_alice.post(at("review"), typed("Be wise and brave.")).status_code == 302
    page = as_alice.get(at("review"))
    review = page.context["review"]
    assert (review.prompts, review.agents, review.diffs) == (
        told["prompts"],
        told["agents"],
        told["distinct_diffs"],
    )
    assert review.token_delta == told["token_delta"]
    assert (review.broken_prefixes, review.rewritten_tokens) == (
        told["broken_prefixes"],
        told["rewritten_tokens"],
    )
    sentence = "Changes 2 prompts of 2 agents, 1 distinct diff, +4 tokens, 2 cache prefixes broken."
    assert sentence in read(page)


def test_the_button_names_its_effect_and_is_red_when_production_moves(deck: Deck, as_alice: Client) -> None:
    as_alice.post(at("review"), typed())
    page = as_alice.get(at("review")).content.decode()
    assert re.search(r'btn btn-error"[^>]*>\s*Save: changes 2 prompts in production at once', page)
    pilot = deck.agents[0]
    edit_record(pilot, {"release_policy": ReleasePolicy.REVIEWED}, expected=pilot.revision, by=BY)
    page = as_alice.get(at("review")).content.decode()
    assert "Save: changes 2 prompts, 1 of them in production at once" in page
    assert "Needs a release that somebody else approves" in page
    cook = deck.agents[1]
    edit_record(cook, {"release_policy": ReleasePolicy.REVIEWED}, expected=cook.revision, by=BY)
    page = as_alice.get(at("review")).content.decode()
    assert re.search(r'btn btn-primary"[^>]*>\s*Save: 2 new versions wait for release', page)
    same = as_alice.post(at("review"), typed("Be brave."))
    assert "Save: changes no prompt" in as_alice.get(same["Location"]).content.decode()


def test_applying_saves_with_its_message_and_lets_the_draft_go(
    deck: Deck, as_alice: Client, alice: Any
) -> None:
    as_alice.post(at("review"), typed())
    answer = as_alice.post(at("review"), {"apply": "1", "message": "Wiser."}, follow=True)
    assert "“Calm” saved." in read(answer)
    soul = Soul.objects.in_workspace(deck.workspace).get(slug="calm")
    assert (soul.text, soul.revision) == ("Be wise.", 2)
    assert not list_drafts(deck.workspace, alice)
    deck.build()
    assert (deck.version(2).message, deck.version(2).author_label) == ("Wiser.", alice.email)
    assert PromptLabel.objects.in_workspace(deck.workspace).filter(version=deck.version(2)).exists()
    again = as_alice.post(at("review"), {"apply": "1"}, follow=True)
    assert "There is no draft of this any more" in read(again)


def test_what_waits_for_a_release_says_so_and_leads_there(deck: Deck, as_alice: Client) -> None:
    assert "not what bots get yet" not in read(as_alice.get(at()))
    pilot = deck.agents[0]
    edit_record(pilot, {"release_policy": ReleasePolicy.REVIEWED}, expected=pilot.revision, by=BY)
    deck.reword("Be wise.")
    page = as_alice.get(at())
    assert "Version 2 is not what bots get yet." in read(page)
    assert "/w/harbour/releases/new/?agent=pilot" in page.content.decode()


def test_who_saved_meanwhile_is_told_and_nothing_is_overwritten_by_itself(
    deck: Deck, as_alice: Client, as_bob: Client
) -> None:
    as_alice.post(at("save"), typed())
    assert as_alice.get(at("state", seen="1"), **HTMX).status_code == 204
    as_bob.post("/w/harbour/souls/calm/edit/", {"label": "Calm", "text": "Be Bob's.", "revision": "1"})
    news = as_alice.get(at("state", seen="1"), **HTMX)
    assert "Changed by bob@example.com" in read(news)
    assert 'name="overwrite" value="2"' in news.content.decode()
    assert "Changed by bob@example.com" in read(as_alice.get(at()))
    refused = as_alice.post(at("review"), {"apply": "1", "message": "Mine."})
    assert refused.status_code == 409
    assert "Be Bob's." in read(refused)
    deck.soul.refresh_from_db()
    assert deck.soul.text == "Be Bob's."
    assert as_alice.post(at("review"), {"apply": "1", "overwrite": "2"}).status_code == 302
    deck.soul.refresh_from_db()
    assert (deck.soul.text, deck.soul.revision) == ("Be wise.", 3)


def test_keeping_mine_moves_the_draft_to_the_newer_revision(deck: Deck, as_alice: Client, alice: Any) -> None:
    edit_record(deck.soul, {"text": "Newer."}, expected=1, by=BY)
    as_alice.post(at("save"), typed(overwrite="2"))
    [draft] = list_drafts(deck.workspace, alice)
    assert draft.base_revision == 2
    assert "Changed by" not in read(as_alice.get(at()))


def test_the_panel_beside_a_form_says_the_same(deck: Deck, as_alice: Client) -> None:
    answer = as_alice.post("/w/harbour/impact/souls/calm/", typed("Be wise and brave."), **HTMX)
    assert "Changes 2 prompts of 2 agents, 1 distinct diff, +4 tokens, 2 cache prefixes broken." in read(
        answer
    )
    assert "go to production at once" in read(answer)
    page = as_alice.post("/w/harbour/impact/souls/calm/", typed("Be wise."))
    assert re.search(
        r'btn btn-error"[^>]*>Save: changes 2 prompts in production at once', page.content.decode()
    )


# --- doors ---------------------------------------------------------------------------------------------


def test_a_viewer_reads_and_writes_nothing(deck: Deck) -> None:
    viewer = make_user("Vera")
    join(deck.workspace, viewer, Role.VIEWER)
    client = signed_in(viewer)
    page = client.get(at())
    html = page.content.decode()
    assert shown_in(page).text == get_version_text(deck.version(1))
    assert "hx-post" not in re.search(r'<form[^>]*id="studio-form"[^>]*>', html)[0]  # type: ignore[index]
    assert re.search(r"<textarea[^>]*readonly", html)
    assert 'id="studio-save"' not in html
    for verb in ("preview", "layouts", "save", "review"):
        assert client.post(at(verb), typed()).status_code == 403
    assert client.get(at("review")).status_code == 403


def test_a_stranger_finds_nothing_and_a_foreign_part_is_not_there(
    deck: Deck, elsewhere_deck: Deck, as_mallory: Client, as_alice: Client
) -> None:
    for verb in ("", "state", "review"):
        assert as_mallory.get(at(verb)).status_code == 404
    for verb in ("preview", "layouts", "save", "review"):
        assert as_mallory.post(at(verb), typed()).status_code == 404
    foreign = make_memory(elsewhere_deck.workspace, "Foreign fact.")
    theirs = f"memories:{foreign.pk}"
    for verb in ("preview", "save", "review"):
        assert as_alice.post(at(verb, theirs), typed()).status_code == 404, verb
    unknown = ("souls:no-such", "memories:abc", "memories:" + "9" * 40, "nonsense:1", "tasks:1")
    for part in (theirs, *unknown):
        assert as_alice.get(at(part=part)).status_code == 404, part
    for part, verb in zip(unknown, cycle(("save", "preview", "review"))):
        assert as_alice.post(at(verb, part), typed()).status_code == 404, (part, verb)
    named = as_alice.post(
        at("preview", "memories:"), {"text": "New.", "agent": elsewhere_deck.agents[0].pk}, **HTMX
    )
    assert named.status_code == 422


def test_an_agent_without_channels_and_an_empty_house_say_what_to_do(alice: User, as_alice: Client) -> None:
    make_workspace("Quay", owner=alice)
    assert "No agents yet" in read(as_alice.get("/w/quay/studio/"))
    make = {"slug": "pilot", "name": "Pilot", "layout": "dramatis", "release_policy": "automatic"}
    as_alice.post("/w/quay/agents/new/", make)
    assert "Speaks nowhere yet" in read(as_alice.get("/w/quay/studio/pilot/"))
    assert as_alice.get("/w/quay/studio/")["Location"] == "/w/quay/studio/pilot/"
    assert "Pilot" in read(as_alice.get("/w/quay/studio/?all=1"))
    assert "No drafts" in read(as_alice.get("/w/quay/drafts/"))


def test_a_new_part_is_made_by_the_review(deck: Deck, as_alice: Client) -> None:
    page = as_alice.get(at(part="memories:"))
    assert "New memory" in read(page)
    body = {"text": "Owns a boat.", "state": "active"}
    as_alice.post(at("review", "memories:"), body)
    assert "Create: changes 2 prompts in production at once" in read(as_alice.get(at("review", "memories:")))
    answer = as_alice.post(at("review", "memories:"), {"apply": "1"}, follow=True)
    assert "“Owns a boat.” created." in read(answer)
    made = Memory.objects.in_workspace(deck.workspace).get()
    assert f"memories%3A{made.pk}" in answer.redirect_chain[-1][0]
    assert not Responsibility.objects.in_workspace(deck.workspace).exists()


def test_a_message_is_one_line_that_every_history_can_keep(deck: Deck, as_alice: Client) -> None:
    as_alice.post(at("review"), typed())
    message = "Wi\x00ser,\r\n\tand\x1b kinder" + "!" * 400
    answer = as_alice.post(at("review"), {"apply": "1", "message": message})
    assert answer.status_code == 302
    [said] = Revision.unscoped.filter(kind="soul", number=2).values_list("message", flat=True)
    assert said.startswith("Wiser,   and kinder!!")
    assert len(said) == 200


def test_what_another_tab_changed_after_the_review_is_not_saved_unseen(
    deck: Deck, as_alice: Client, alice: Any
) -> None:
    as_alice.post(at("review"), typed("Be wise."))
    page = as_alice.get(at("review")).content.decode()
    [mark] = re.findall(r'name="draft" value="([^"]+)"', page)
    as_alice.post(at("save"), typed("Be wild."))
    answer = as_alice.post(at("review"), {"apply": "1", "draft": mark}, follow=True)
    assert "Your draft was changed after you looked" in read(answer)
    deck.soul.refresh_from_db()
    assert (deck.soul.revision, list_drafts(deck.workspace, alice).count()) == (1, 1)
    [mark] = re.findall(r'name="draft" value="([^"]+)"', answer.content.decode())
    assert as_alice.post(at("review"), {"apply": "1", "draft": mark}).status_code == 302
    deck.soul.refresh_from_db()
    assert deck.soul.text == "Be wild."


def test_of_two_tabs_that_save_the_same_draft_one_does(deck: Deck, as_alice: Client, alice: Any) -> None:
    as_alice.post(at("review", "memories:"), {"text": "Owns a boat.", "state": "active"})
    [first], [second] = list_drafts(deck.workspace, alice), list_drafts(deck.workspace, alice)
    apply_draft(first, lambda: make_memory(deck.workspace, "Owns a boat."))
    with pytest.raises(DraftChanged):
        apply_draft(second, lambda: make_memory(deck.workspace, "Owns a boat."))
    assert Memory.objects.in_workspace(deck.workspace).count() == 1


def test_a_draft_outlives_a_refusal(deck: Deck, alice: Any, by_alice: Any) -> None:
    kept = store_draft(deck.workspace, "souls", deck.soul, {"text": ["Half"]}, key="calm", by=by_alice)

    def refuse() -> Soul:
        raise DomainError("No.")

    with pytest.raises(DomainError):
        apply_draft(kept, refuse)
    assert list_drafts(deck.workspace, alice).count() == 1


def test_an_undo_takes_back_no_later_change_of_somebody_else(
    deck: Deck, as_alice: Client, as_bob: Client
) -> None:
    as_alice.post(at("review"), typed("Be wise."))
    page = as_alice.post(at("review"), {"apply": "1"}, follow=True).content.decode()
    assert '<input type="hidden" name="expected" value="2">' in page
    as_bob.post("/w/harbour/souls/calm/edit/", {"label": "Calm", "text": "Be Bob's.", "revision": "2"})
    answer = as_alice.post("/w/harbour/souls/calm/history/1/restore/", {"expected": "2"}, follow=True)
    assert "revision 2 is now 3" in read(answer)
    deck.soul.refresh_from_db()
    assert deck.soul.text == "Be Bob's."
    for odd in ("", "x", "٣", "-1", "9" * 30):
        as_alice.post("/w/harbour/souls/calm/history/2/restore/", {"expected": odd})
    deck.soul.refresh_from_db()
    assert deck.soul.text == "Be wise."


# --- with a fault in place -----------------------------------------------------------------------------


@pytest.mark.planted
def test_drafts_that_forget_whose_they_are_would_be_found(
    deck: Deck, as_alice: Client, as_bob: Client, alice: Any, monkeypatch: Any
) -> None:
    def everybodys(workspace: Any, person: Any) -> Any:
        return KeptDraft.objects.in_workspace(workspace).select_related("agent").order_by("-updated_at")

    for name in ("personas.drafts.services.list_drafts", "prompts.studio.draft_views.list_drafts"):
        monkeypatch.setattr(name, everybodys)
    with pytest.raises(AssertionError):
        test_a_draft_is_kept_for_its_writer_alone_and_can_be_discarded(deck, as_alice, as_bob, alice)


@pytest.mark.planted
def test_a_preview_that_forgets_the_draft_would_be_found(
    deck: Deck, as_alice: Client, monkeypatch: Any
) -> None:
    monkeypatch.setattr("prompts.inputs.collect.InputCollector.apply_draft", lambda self, record: record)
    with pytest.raises(AssertionError):
        test_the_preview_is_what_saving_then_stores_byte_for_byte(deck, as_alice)
