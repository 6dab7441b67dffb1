"""The Studio: the live preview equals what saving stores, and drafts are private to their author."""

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
    Agent,
    FormDraft,
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
from prompts.evidence.erasure.services import erase_record
from prompts.models import PromptLabel, PromptSettings, PromptVersion
from prompts.publishing.versions.selectors import get_version_text
from skills.agent_context.services import choose_context
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
MOST_QUERIES = 27


def studio_url(page: str = "", part: str = SOUL, **params: str) -> str:
    query = "&".join(f"{name}={value}" for name, value in {"part": part, **params}.items())
    return f"{HERE}{page}{'/' if page else ''}?{query}"


def soul_form(text: str = "Be wise.", **overrides: Any) -> dict[str, Any]:
    return {"name": "Calm", "text": text, "revision": "1"} | overrides


def get_preview(response: Any) -> Any:
    assert response.status_code == 200, response.content.decode()[:2_000]
    return response.context["preview"]


class TextExtractor(HTMLParser):
    """Collects the text between HTML tags."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def get_text(response: Any) -> str:
    extractor = TextExtractor()
    extractor.feed(response.content.decode())
    return " ".join(" ".join(extractor.texts).split())


# --- the preview ---------------------------------------------------------------------------------------


def test_the_preview_equals_the_stored_text_byte_for_byte(deck: Deck, as_alice: Client) -> None:
    preview = get_preview(as_alice.post(studio_url("preview"), soul_form("Be wise.\r\nAnd kind."), **HTMX))
    assert PromptVersion.objects.in_workspace(deck.workspace).count() == 2
    deck.reword("Be wise.\nAnd kind.")
    stored = deck.version(2)
    assert preview.text.encode() == get_version_text(stored).encode()
    assert (preview.tokens, preview.sizes) == (stored.tokens, stored.sizes)


@pytest.mark.hard
def test_the_preview_equals_the_stored_text_for_every_kind_of_part(deck: Deck, as_alice: Client) -> None:
    workspace, pilot = deck.workspace, deck.agents[0]
    first = make_memory(workspace, "Likes tea.")
    make_memory(workspace, "Has a cat.")
    responsibility = make_responsibility(pilot, "Steer")
    make_responsibility(pilot, "Dock")
    tool = make_tool(workspace, "read", description="Reads.")
    make_skill(workspace, "knots-b", for_all_agents=True)
    skill = make_skill(workspace, "knots", for_all_agents=True)
    edit_record(pilot, {"tools": [tool]}, expected=pilot.revision, by=BY)
    deck.build()
    parts: dict[str, dict[str, Any]] = {
        f"memories:{first.pk}": {"text": "Likes coffee."},
        "memories:": {"text": "Owns a boat.", "status": "active"},
        f"responsibilities:{responsibility.pk}": {"title": "Steer", "text": "Straight ahead."},
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
        values["revision"] = as_alice.get(studio_url(part=part)).context["open_part"].base_revision
        text = get_preview(as_alice.post(studio_url("preview", part), values, **HTMX)).text
        assert as_alice.post(studio_url("review", part), values).status_code == 302
        response = as_alice.post(studio_url("review", part), {"apply": "1"})
        assert response.status_code == 302, (part, get_text(response))
        deck.build()
        latest = deck.prompt().latest
        assert latest is not None
        assert text == get_version_text(latest), part


def test_edited_lines_are_highlighted_and_every_span_names_its_source(deck: Deck, as_alice: Client) -> None:
    deck.reword("Be brave.\nBe calm.")
    response = as_alice.post(
        studio_url("preview"), soul_form("Be brave.\nBe very calm.", revision="2"), **HTMX
    )
    html = response.content.decode()
    [highlighted] = re.findall(r'<span class="dr-stretch dr-seg is-soul is-edited"[^>]*>([^<]*)</span>', html)
    assert highlighted.strip() == "Be very calm."
    assert 'data-part="souls:calm"' in html
    assert "revision 3, your draft" in html
    plain = as_alice.post(studio_url("preview"), soul_form("Be brave.\nBe calm.", revision="2"), **HTMX)
    assert "is-edited" not in plain.content.decode()
    gone = as_alice.post(studio_url("preview"), soul_form("Be calm.", revision="2"), **HTMX)
    assert "1 line removed" in get_text(gone)


@pytest.mark.slow
def test_another_layout_and_channel_can_be_previewed(deck: Deck, as_alice: Client) -> None:
    pilot = deck.agents[0]
    channels = [make_channel(deck.workspace, "bridge", formatting="Short."), deck.prompt().channel]
    edit_record(pilot, {"channels": channels}, expected=pilot.revision, by=BY)
    deck.build()
    body = soul_form() | {"view-channel": "bridge", "view-layout": "nova"}
    preview = get_preview(as_alice.post(studio_url("preview"), body, **HTMX))
    assert (preview.layout, "Short." in preview.text or preview.layout == "nova") == ("nova", True)
    page = as_alice.get(studio_url(channel="bridge", layout="nova"))
    assert page.context["location"].channel == "bridge"
    assert get_preview(page).layout == "nova"
    assert get_preview(as_alice.get(studio_url(channel="no-such", layout="no-such"))).layout == "dramatis"
    table = as_alice.post(studio_url("layouts"), soul_form(), **HTMX)
    assert [row.name for row in table.context["rows"]] == ["dramatis", "opal", "pi", "moltis", "nova", "ptc"]
    assert all(row.tokens for row in table.context["rows"])


def test_field_errors_are_shown_and_the_last_valid_preview_stays(deck: Deck, as_alice: Client) -> None:
    response = as_alice.post(studio_url("preview"), soul_form(name=""), **HTMX)
    assert (response.status_code, response["HX-Reswap"]) == (422, "none")
    html = response.content.decode()
    assert re.search(
        r'id="id_name_mistake"[^>]*hx-swap-oob="true">.*?This field is required', html, re.DOTALL
    )
    assert re.search(r'id="id_text_mistake"[^>]*hx-swap-oob="true"></div>', html)
    tool = make_tool(deck.workspace, "read")
    bad = as_alice.post(studio_url("preview", "tools:read"), {"name": tool.name, "parameters": "{"}, **HTMX)
    assert bad.status_code == 422
    assert re.search(r'id="id_parameters_mistake"[^>]*>\s*<ul', bad.content.decode())
    good = as_alice.post(studio_url("preview"), soul_form(), **HTMX)
    assert re.search(r'id="id_name_mistake"[^>]*hx-swap-oob="true"></div>', good.content.decode())


@pytest.mark.slow
def test_a_preview_stores_nothing(deck: Deck, as_alice: Client, django_assert_max_num_queries: Any) -> None:
    as_alice.get(studio_url())
    with django_assert_max_num_queries(MOST_QUERIES) as queries:
        as_alice.post(studio_url("preview"), soul_form(), **HTMX)
    written = [
        q["sql"] for q in queries.captured_queries if q["sql"].startswith(("INSERT", "UPDATE", "DELETE"))
    ]
    assert not [sql for sql in written if "django_session" not in sql]
    assert not FormDraft.objects.in_workspace(deck.workspace).exists()


@pytest.mark.slow
def test_the_editor_reads_the_stored_version_with_few_queries(
    deck: Deck, as_alice: Client, django_assert_max_num_queries: Any
) -> None:
    assert get_preview(as_alice.get(studio_url())).text == get_version_text(deck.version(1))
    for number in range(4):
        make_memory(deck.workspace, f"Fact {number}.")
    deck.build()
    with django_assert_max_num_queries(MOST_QUERIES):
        assert "Fact 3." in get_text(as_alice.get(studio_url()))
    memory = Memory.objects.in_workspace(deck.workspace).order_by("pk").first()
    for part in ("agents:pilot", "channels:deck", f"memories:{memory.pk if memory else 0}"):
        with django_assert_max_num_queries(MOST_QUERIES):
            assert as_alice.get(studio_url(part=part)).status_code == 200


@pytest.mark.slow
def test_a_draft_takes_few_queries_with_every_kind_of_part(
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
    as_alice.post(studio_url("save"), soul_form(), **HTMX)
    # The first request also records the visit, which takes extra queries.
    as_alice.get(studio_url())
    with django_assert_max_num_queries(MOST_QUERIES):
        text = get_text(as_alice.get(studio_url()))
    for phrase in ("Be wise.", "Likes tea.", "Steer", "knots", "maps"):
        assert phrase in text
    for page in ("preview", "layouts"):
        with django_assert_max_num_queries(MOST_QUERIES, info=page):
            assert as_alice.post(studio_url(page), soul_form(), **HTMX).status_code == 200
    with django_assert_max_num_queries(MOST_QUERIES):
        assert as_alice.get(studio_url("review")).status_code == 200


@pytest.mark.hard
def test_a_review_takes_few_queries_with_files_and_reviewed_agents(
    deck: Deck, as_alice: Client, bob: Any, tmp_path: Any, django_assert_max_num_queries: Any
) -> None:
    workspace, cook = deck.workspace, deck.agents[1]
    Membership.objects.in_workspace(workspace).filter(user=bob).update(role=Role.ADMIN)
    edit_record(cook, {"release_policy": ReleasePolicy.REVIEWED}, expected=1, by=BY)
    (tmp_path / "AGENTS.md").write_text("Knock first.", encoding="utf-8")
    source = make_source(workspace, tmp_path)
    refreshed(source)
    for agent in Agent.objects.in_workspace(workspace).filter(pk__in=[one.pk for one in deck.agents]):
        choose_context(agent, source, "pi", working_directory="", expected=agent.revision, by=BY)
    make_skill(workspace, "knots", agents=[cook])
    deck.build()
    as_alice.post(studio_url("save"), soul_form(), **HTMX)
    as_alice.get(studio_url("review"))
    with django_assert_max_num_queries(MOST_QUERIES):
        review = as_alice.get(studio_url("review"))
    assert review.context["review"].prompts == len(deck.agents)
    assert [row.user for row in review.context["approvers"]] == [bob]


def test_a_saved_change_without_a_build_is_assembled(deck: Deck, as_alice: Client) -> None:
    edit_record(deck.soul, {"text": "Be new."}, expected=1, by=BY)
    assert "Be new." in get_preview(as_alice.get(studio_url())).text


def test_budget_cached_share_and_scan_findings_are_shown(deck: Deck, as_alice: Client) -> None:
    PromptSettings(workspace=deck.workspace, token_budget=3).save()
    response = as_alice.post(studio_url("preview"), soul_form("Be wise.\u202e"), **HTMX)
    body = get_text(response)
    assert "of a budget of 3" in body
    assert "over budget" in body
    assert "cacheable" in body
    assert "check these warnings" in body
    assert "dr-glyph" in response.content.decode()


@pytest.mark.slow
def test_slots_are_filled_as_by_the_render_call(deck: Deck, as_alice: Client, by_alice: Any) -> None:
    pilot = deck.agents[0]
    profile = make_profile(deck.workspace, timezone="Asia/Tokyo")
    edit_record(pilot, {"user_profile": profile}, expected=pilot.revision, by=BY)
    deck.build()
    task = make_task(
        deck.workspace, "Splice the rope", agent=pilot, steps=[{"title": "Cut", "is_done": True}]
    )
    _, secret = create_key(deck.workspace, name="Bot", scopes={}, by=by_alice)
    body = {"now": "2026-11-15T09:30:00+00:00", "task": task.number, "is_background": True}
    body |= {"host": {"os": "linux"}, "sandbox": {"enabled": True}}
    response = Client().post(
        "/api/v1/agents/pilot/channels/deck/prompt:render",
        json.dumps(body),
        content_type="application/json",
        HTTP_AUTHORIZATION=f"Bearer {secret}",
    )
    served = json.loads(response.content)["text"]
    slots = {"slot-now": "2026-11-15T09:30", "slot-task": str(task.number), "slot-is_background": "on"}
    slots["slot-facts"] = "os=linux\nsandbox.enabled=true\n"
    page = as_alice.get(studio_url(), slots | {"part": SOUL})
    assert get_preview(page).text == served
    drafted = get_preview(as_alice.post(studio_url("preview"), soul_form("Be brave.") | slots, **HTMX))
    assert drafted.text == served
    assert "⟦" in get_preview(as_alice.get(studio_url())).text
    assert "⟦" not in get_preview(as_alice.get(studio_url(), {"slot-fill": "on", "part": SOUL})).text
    wrong = as_alice.get(studio_url(), {"slot-task": "99", "slot-facts": "nonsense", "slot-timezone": "Mars"})
    assert get_text(wrong).count("Fix these values to see them in the preview") == 1
    assert {"task", "facts", "timezone"} <= set(wrong.context["slots"].errors)
    unknown = as_alice.get(studio_url(), {"slot-facts": "surface=web"}).context["slots"].errors["facts"]
    assert "“surface” is not a known name. Known names: host, os, " in str(unknown[0])


# --- drafts --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_draft_is_private_and_can_be_discarded(
    deck: Deck, as_alice: Client, as_bob: Client, alice: Any
) -> None:
    saved = as_alice.post(studio_url("save"), soul_form("My secret thought."), **HTMX)
    assert (saved.status_code, "Draft saved" in get_text(saved)) == (200, True)
    page = as_alice.get(studio_url())
    assert "My secret thought." in get_text(page)
    assert "You saved this draft" in get_text(page)
    assert "My secret thought." in get_preview(page).text
    for url in (studio_url(), studio_url("review"), "/w/harbour/drafts/", "/w/harbour/studio/"):
        assert "secret thought" not in as_bob.get(url).content.decode()
    deck.soul.refresh_from_db()
    assert deck.soul.text == "Be brave."
    [draft] = list_drafts(deck.workspace, alice)
    assert "Calm" in get_text(as_alice.get("/w/harbour/drafts/"))
    assert draft.part == SOUL
    theirs = as_bob.post("/w/harbour/drafts/discard/", {"part": SOUL}, follow=True)
    assert "This draft no longer exists" in get_text(theirs)
    assert list_drafts(deck.workspace, alice).count() == 1
    mine = as_alice.post("/w/harbour/drafts/discard/", {"part": SOUL, "back": "studio"})
    assert mine["Location"].startswith(HERE)
    assert not list_drafts(deck.workspace, alice)
    assert "You saved this draft" not in get_text(as_alice.get(studio_url()))


@pytest.mark.slow
def test_an_invalid_draft_is_kept(deck: Deck, as_alice: Client) -> None:
    assert as_alice.post(studio_url("save"), soul_form("Half a", name="")).status_code == 302
    page = as_alice.get(studio_url())
    assert "Half a" in get_text(page)
    assert "This field is required" in get_text(page)
    assert get_preview(page).text == get_version_text(deck.version(1))
    review = as_alice.get(studio_url("review"))
    assert "This draft cannot be saved yet" in get_text(review)
    refused = as_alice.post(studio_url("review"), {"apply": "1"})
    assert refused.status_code == 422
    deck.soul.refresh_from_db()
    assert deck.soul.revision == 1


def test_number_and_size_of_drafts_are_limited(deck: Deck, by_alice: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("personas.drafts.services.MAX_DRAFTS", 3)
    with pytest.raises(DraftLimitExceeded):
        store_draft(deck.workspace, "souls", deck.soul, {"text": ["x" * 400_001]}, key="calm", by=by_alice)
    for number in range(3):
        store_draft(deck.workspace, "souls", None, {"text": ["x"]}, key=str(number), by=by_alice)
    with pytest.raises(DraftLimitExceeded):
        store_draft(deck.workspace, "souls", None, {"text": ["x"]}, key="more", by=by_alice)
    store_draft(deck.workspace, "souls", None, {"text": ["y"]}, key="1", by=by_alice)


def test_an_erasure_deletes_drafts_that_contain_the_text(deck: Deck, by_alice: Any, alice: Any) -> None:
    phrase = "Mrs Penhaligon keeps a spare key."
    memory = make_memory(deck.workspace, phrase)
    other = make_memory(deck.workspace, "Likes tea.")
    for key, text in ((memory.pk, "Mrs P. keeps something."), (other.pk, f"Note: {phrase}\r\n")):
        store_draft(deck.workspace, "memories", None, {"text": [text]}, key=str(key), by=by_alice)
    store_draft(deck.workspace, "souls", deck.soul, {"text": ["Unrelated."]}, key="calm", by=by_alice)
    erase_record(memory, reason="She asked.", by=by_alice)
    assert [draft.part for draft in list_drafts(deck.workspace, alice)] == [SOUL]


def test_a_removed_member_leaves_no_drafts(deck: Deck, as_bob: Client, bob: Any, by_alice: Any) -> None:
    as_bob.post(studio_url("save"), soul_form("Bob's own."))
    assert list_drafts(deck.workspace, bob).count() == 1
    membership = bob.memberships.get(workspace=deck.workspace)
    remove_member(membership, by=by_alice)
    assert as_bob.get(studio_url()).status_code == 404
    join(deck.workspace, bob)
    assert "Bob's own." not in as_bob.get(studio_url()).content.decode()


# --- review --------------------------------------------------------------------------------------------


def test_the_review_has_the_numbers_of_the_impact_api(deck: Deck, as_alice: Client, by_alice: Any) -> None:
    _, secret = create_key(deck.workspace, name="Admin", kind="admin", scopes={}, by=by_alice)
    body = {"kind": "soul", "key": "calm", "values": {"text": "Be wise and brave."}}
    response = Client().post(
        "/api/v1/impact",
        json.dumps(body),
        content_type="application/json",
        HTTP_AUTHORIZATION=f"Bearer {secret}",
    )
    text = json.loads(response.content)
    assert as_alice.post(studio_url("review"), soul_form("Be wise and brave.")).status_code == 302
    page = as_alice.get(studio_url("review"))
    review = page.context["review"]
    assert (review.prompts, review.agents, review.diffs) == (
        text["prompts"],
        text["agents"],
        text["distinct_diffs"],
    )
    assert review.token_delta == text["token_delta"]
    assert (review.invalidated_cache_prefixes, review.rewritten_tokens) == (
        text["invalidated_cache_prefixes"],
        text["rewritten_tokens"],
    )
    sentence = "Changes 2 prompts for 2 agents, 1 unique change, +4 tokens, 2 cached prefixes will change."
    assert sentence in get_text(page)


@pytest.mark.slow
def test_the_button_names_its_effect_and_is_red_if_production_changes(deck: Deck, as_alice: Client) -> None:
    as_alice.post(studio_url("review"), soul_form())
    page = as_alice.get(studio_url("review")).content.decode()
    assert re.search(r'btn btn-error"[^>]*>\s*Save and deploy \(2 prompts\)', page)
    pilot = deck.agents[0]
    edit_record(pilot, {"release_policy": ReleasePolicy.REVIEWED}, expected=pilot.revision, by=BY)
    page = as_alice.get(studio_url("review")).content.decode()
    assert "Save and deploy (1 of 2 prompts)" in page
    assert "need a release that another member approves" in page
    cook = deck.agents[1]
    edit_record(cook, {"release_policy": ReleasePolicy.REVIEWED}, expected=cook.revision, by=BY)
    page = as_alice.get(studio_url("review")).content.decode()
    assert re.search(r'btn btn-primary"[^>]*>\s*Save \(2 prompts wait for approval\)', page)
    same = as_alice.post(studio_url("review"), soul_form("Be brave."))
    assert "Save (no prompts affected)" in as_alice.get(same["Location"]).content.decode()


@pytest.mark.slow
def test_applying_saves_with_the_message_and_deletes_the_draft(
    deck: Deck, as_alice: Client, alice: Any
) -> None:
    as_alice.post(studio_url("review"), soul_form())
    response = as_alice.post(studio_url("review"), {"apply": "1", "message": "Wiser."}, follow=True)
    assert "“Calm” saved." in get_text(response)
    soul = Soul.objects.in_workspace(deck.workspace).get(slug="calm")
    assert (soul.text, soul.revision) == ("Be wise.", 2)
    assert not list_drafts(deck.workspace, alice)
    deck.build()
    assert (deck.version(2).message, deck.version(2).author_label) == ("Wiser.", alice.email)
    assert PromptLabel.objects.in_workspace(deck.workspace).filter(version=deck.version(2)).exists()
    again = as_alice.post(studio_url("review"), {"apply": "1"}, follow=True)
    assert "This draft no longer exists" in get_text(again)


def test_an_unreleased_version_links_to_the_release_request(deck: Deck, as_alice: Client) -> None:
    assert "is not in production" not in get_text(as_alice.get(studio_url()))
    pilot = deck.agents[0]
    edit_record(pilot, {"release_policy": ReleasePolicy.REVIEWED}, expected=pilot.revision, by=BY)
    deck.reword("Be wise.")
    page = as_alice.get(studio_url())
    assert "Version 2 is not in production." in get_text(page)
    assert "/w/harbour/releases/new/?agent=pilot" in page.content.decode()


@pytest.mark.slow
def test_a_conflicting_save_is_shown_and_not_overwritten(
    deck: Deck, as_alice: Client, as_bob: Client
) -> None:
    as_alice.post(studio_url("save"), soul_form())
    assert as_alice.get(studio_url("state", seen="1"), **HTMX).status_code == 204
    as_bob.post("/w/harbour/souls/calm/edit/", {"name": "Calm", "text": "Be Bob's.", "revision": "1"})
    updates = as_alice.get(studio_url("state", seen="1"), **HTMX)
    assert "Changed by Bob" in get_text(updates)
    assert 'name="overwrite" value="2"' in updates.content.decode()
    assert "Changed by Bob" in get_text(as_alice.get(studio_url()))
    refused = as_alice.post(studio_url("review"), {"apply": "1", "message": "Mine."})
    assert refused.status_code == 409
    assert "Be Bob's." in get_text(refused)
    deck.soul.refresh_from_db()
    assert deck.soul.text == "Be Bob's."
    assert as_alice.post(studio_url("review"), {"apply": "1", "overwrite": "2"}).status_code == 302
    deck.soul.refresh_from_db()
    assert (deck.soul.text, deck.soul.revision) == ("Be wise.", 3)


def test_keeping_my_draft_bases_it_on_the_newer_revision(deck: Deck, as_alice: Client, alice: Any) -> None:
    edit_record(deck.soul, {"text": "Newer."}, expected=1, by=BY)
    as_alice.post(studio_url("save"), soul_form(overwrite="2"))
    [draft] = list_drafts(deck.workspace, alice)
    assert draft.base_revision == 2
    assert "Changed by" not in get_text(as_alice.get(studio_url()))


def test_the_impact_panel_of_a_form_shows_the_same_numbers(deck: Deck, as_alice: Client) -> None:
    response = as_alice.post("/w/harbour/impact/souls/calm/", soul_form("Be wise and brave."), **HTMX)
    assert (
        "Changes 2 prompts for 2 agents, 1 unique change, +4 tokens, 2 cached prefixes will change."
        in get_text(response)
    )
    assert "move to production immediately" in get_text(response)
    page = as_alice.post("/w/harbour/impact/souls/calm/", soul_form("Be wise."))
    assert re.search(r'btn btn-error"[^>]*>Save and deploy \(2 prompts\)', page.content.decode())


# --- access --------------------------------------------------------------------------------------------


def test_a_viewer_can_read_but_not_write(deck: Deck) -> None:
    viewer = make_user("Vera")
    join(deck.workspace, viewer, Role.VIEWER)
    client = signed_in(viewer)
    page = client.get(studio_url())
    html = page.content.decode()
    assert get_preview(page).text == get_version_text(deck.version(1))
    assert "hx-post" not in re.search(r'<form[^>]*id="studio-form"[^>]*>', html)[0]  # type: ignore[index]
    assert re.search(r"<textarea[^>]*readonly", html)
    assert 'id="studio-save"' not in html
    for action in ("preview", "layouts", "save", "review"):
        assert client.post(studio_url(action), soul_form()).status_code == 403
    assert client.get(studio_url("review")).status_code == 403


@pytest.mark.slow
def test_outsiders_and_foreign_parts_get_404(
    deck: Deck, elsewhere_deck: Deck, as_mallory: Client, as_alice: Client
) -> None:
    for page in ("", "state", "review"):
        assert as_mallory.get(studio_url(page)).status_code == 404
    for page in ("preview", "layouts", "save", "review"):
        assert as_mallory.post(studio_url(page), soul_form()).status_code == 404
    foreign = make_memory(elsewhere_deck.workspace, "Foreign fact.")
    theirs = f"memories:{foreign.pk}"
    for page in ("preview", "save", "review"):
        assert as_alice.post(studio_url(page, theirs), soul_form()).status_code == 404, page
    unknown = ("souls:no-such", "memories:abc", "memories:" + "9" * 40, "nonsense:1", "tasks:1")
    for part in (theirs, *unknown):
        assert as_alice.get(studio_url(part=part)).status_code == 404, part
    for part, page in zip(unknown, cycle(("save", "preview", "review"))):
        assert as_alice.post(studio_url(page, part), soul_form()).status_code == 404, (part, page)
    named = as_alice.post(
        studio_url("preview", "memories:"), {"text": "New.", "agent": elsewhere_deck.agents[0].pk}, **HTMX
    )
    assert named.status_code == 422


@pytest.mark.slow
def test_an_agent_without_channels_and_an_empty_workspace_show_hints(alice: User, as_alice: Client) -> None:
    make_workspace("Quay", owner=alice)
    assert "No agents yet" in get_text(as_alice.get("/w/quay/studio/"))
    agent_form = {"slug": "pilot", "name": "Pilot", "layout": "dramatis", "release_policy": "automatic"}
    as_alice.post("/w/quay/agents/new/", agent_form)
    assert "No channels yet" in get_text(as_alice.get("/w/quay/studio/pilot/"))
    assert as_alice.get("/w/quay/studio/")["Location"] == "/w/quay/studio/pilot/"
    assert "Pilot" in get_text(as_alice.get("/w/quay/studio/?all=1"))
    assert "No drafts" in get_text(as_alice.get("/w/quay/drafts/"))


@pytest.mark.slow
def test_the_review_creates_a_new_part(deck: Deck, as_alice: Client) -> None:
    page = as_alice.get(studio_url(part="memories:"))
    assert "New memory" in get_text(page)
    body = {"text": "Owns a boat.", "status": "active"}
    as_alice.post(studio_url("review", "memories:"), body)
    assert "Create and deploy (2 prompts)" in get_text(as_alice.get(studio_url("review", "memories:")))
    response = as_alice.post(studio_url("review", "memories:"), {"apply": "1"}, follow=True)
    assert "“Owns a boat.” created." in get_text(response)
    memory = Memory.objects.in_workspace(deck.workspace).get()
    assert f"memories%3A{memory.pk}" in response.redirect_chain[-1][0]
    assert not Responsibility.objects.in_workspace(deck.workspace).exists()


def test_a_message_is_reduced_to_one_line_without_control_characters(deck: Deck, as_alice: Client) -> None:
    as_alice.post(studio_url("review"), soul_form())
    message = "Wi\x00ser,\r\n\tand\x1b kinder" + "!" * 400
    response = as_alice.post(studio_url("review"), {"apply": "1", "message": message})
    assert response.status_code == 302
    [body] = Revision.unscoped.filter(kind="soul", number=2).values_list("message", flat=True)
    assert body.startswith("Wiser,   and kinder!!")
    assert len(body) == 200


@pytest.mark.slow
def test_a_draft_changed_in_another_tab_is_not_applied_unreviewed(
    deck: Deck, as_alice: Client, alice: Any
) -> None:
    as_alice.post(studio_url("review"), soul_form("Be wise."))
    page = as_alice.get(studio_url("review")).content.decode()
    [mark] = re.findall(r'name="draft" value="([^"]+)"', page)
    as_alice.post(studio_url("save"), soul_form("Be wild."))
    response = as_alice.post(studio_url("review"), {"apply": "1", "draft": mark}, follow=True)
    assert "Your draft changed after you opened this page" in get_text(response)
    deck.soul.refresh_from_db()
    assert (deck.soul.revision, list_drafts(deck.workspace, alice).count()) == (1, 1)
    [mark] = re.findall(r'name="draft" value="([^"]+)"', response.content.decode())
    assert as_alice.post(studio_url("review"), {"apply": "1", "draft": mark}).status_code == 302
    deck.soul.refresh_from_db()
    assert deck.soul.text == "Be wild."


def test_a_draft_is_applied_only_once(deck: Deck, as_alice: Client, alice: Any) -> None:
    as_alice.post(studio_url("review", "memories:"), {"text": "Owns a boat.", "status": "active"})
    [first], [second] = list_drafts(deck.workspace, alice), list_drafts(deck.workspace, alice)
    apply_draft(first, lambda: make_memory(deck.workspace, "Owns a boat."))
    with pytest.raises(DraftChanged):
        apply_draft(second, lambda: make_memory(deck.workspace, "Owns a boat."))
    assert Memory.objects.in_workspace(deck.workspace).count() == 1


def test_a_draft_survives_a_failed_save(deck: Deck, alice: Any, by_alice: Any) -> None:
    draft = store_draft(deck.workspace, "souls", deck.soul, {"text": ["Half"]}, key="calm", by=by_alice)

    def fail() -> Soul:
        raise DomainError("No.")

    with pytest.raises(DomainError):
        apply_draft(draft, fail)
    assert list_drafts(deck.workspace, alice).count() == 1


@pytest.mark.slow
def test_an_undo_does_not_revert_a_later_change_of_another_member(
    deck: Deck, as_alice: Client, as_bob: Client
) -> None:
    as_alice.post(studio_url("review"), soul_form("Be wise."))
    page = as_alice.post(studio_url("review"), {"apply": "1"}, follow=True).content.decode()
    assert '<input type="hidden" name="expected" value="2">' in page
    as_bob.post("/w/harbour/souls/calm/edit/", {"name": "Calm", "text": "Be Bob's.", "revision": "2"})
    response = as_alice.post("/w/harbour/souls/calm/history/1/restore/", {"expected": "2"}, follow=True)
    assert "You edited revision 2, but the current revision is 3" in get_text(response)
    deck.soul.refresh_from_db()
    assert deck.soul.text == "Be Bob's."
    for invalid in ("", "x", "٣", "-1", "9" * 30):
        as_alice.post("/w/harbour/souls/calm/history/2/restore/", {"expected": invalid})
    deck.soul.refresh_from_db()
    assert deck.soul.text == "Be wise."


# --- planted faults ------------------------------------------------------------------------------------


@pytest.mark.planted
def test_a_draft_found_without_its_author_would_be_detected(
    deck: Deck, as_alice: Client, as_bob: Client, alice: Any, monkeypatch: Any
) -> None:
    def list_all_drafts(workspace: Any, person: Any) -> Any:
        return FormDraft.objects.in_workspace(workspace)

    monkeypatch.setattr("personas.drafts.services.list_drafts", list_all_drafts)
    with pytest.raises(AssertionError):
        test_a_draft_is_private_and_can_be_discarded(deck, as_alice, as_bob, alice)


@pytest.mark.planted
def test_a_preview_without_the_draft_would_be_detected(
    deck: Deck, as_alice: Client, monkeypatch: Any
) -> None:
    monkeypatch.setattr(
        "prompts.publishing.inputs.collect.InputCollector.apply_draft", lambda self, record: record
    )
    with pytest.raises(AssertionError):
        test_the_preview_equals_the_stored_text_byte_for_byte(deck, as_alice)
