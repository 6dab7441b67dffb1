"""Version pages: timeline, one version with its origins, diff, and manual label moves."""

import json
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from personas.models import Agent
from personas.records.services import archive_record, edit_record
from personas.roles import Role
from personas.work.services import move_responsibility
from prompts.models import PRODUCTION, AgentPrompt, BuildCause, LabelMove, PromptLabel, PromptVersion
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.labels.services import move_label, protect_label, roll_back
from prompts.publishing.versions.selectors import get_version_text
from tests.factories import (
    BY,
    join,
    make_agent,
    make_channel,
    make_memory,
    make_responsibility,
    make_soul,
    make_user,
)
from tests.prompts.evidence.integrity.forged_history import by_hand, unguarded
from tests.shared_cast import (  # noqa: F401  # fixtures
    SharedCast,
    shared_alice,
    shared_as_alice,
    shared_as_bob,
    shared_as_mallory,
    shared_bob,
    shared_cast,
    shared_commits,
    shared_elsewhere,
    shared_mallory,
    shared_stage,
    shared_workspace,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("commits")]
LIMIT = 14
# Every page loads the session, the user and the membership.
EVERY_PAGE = 3


def set_stage(shared: SharedCast) -> None:
    """A pilot on deck with two versions, the second in production; Rita reviews."""
    workspace = shared.workspace
    rita = make_user("Rita")
    join(workspace, rita, Role.REVIEWER)
    shared.sign_in("Rita", rita)
    shared.deck, shared.soul = make_channel(workspace, "deck"), make_soul(workspace, text="Be brave.")
    shared.pilot = make_agent(workspace, "pilot", soul=shared.soul, channels=[shared.deck])
    shared.first = prompt_of(shared.pilot).latest
    reword(shared.soul, "Be brave and wise.", "Wiser")
    shared.prompt = prompt_of(shared.pilot)


@pytest.fixture
def deck(stage):
    return stage.deck


@pytest.fixture
def soul(stage):
    return stage.soul


@pytest.fixture
def pilot(stage):
    return stage.pilot


@pytest.fixture
def prompt(stage) -> Any:
    return stage.prompt


@pytest.fixture
def first(stage) -> Any:
    """The first version, no longer the latest."""
    return stage.first


@pytest.fixture
def as_reviewer(stage):
    return stage.client("Rita")


def prompt_of(agent) -> Any:
    rows = AgentPrompt.objects.in_workspace(agent.workspace_id).select_related("latest", "agent", "channel")
    return rows.get(agent=agent)


def production(prompt) -> int | None:
    label = PromptLabel.unscoped.filter(prompt=prompt, name=PRODUCTION).select_related("version").first()
    return label.version.number if label else None


def reword(soul, text, message=""):
    soul.refresh_from_db()
    edit_record(soul, {"text": text}, expected=soul.revision, by=BY, message=message)


def page(client, path, status=200):
    answer = client.get(path if path.startswith("/") else f"/w/harbour/{path}")
    assert answer.status_code == status, path
    return answer.content.decode()


def submit(client, path, data=None):
    """Submit a form, and return the messages of the next page."""
    answer = client.post(f"/w/harbour/{path}", data or {}, follow=True)
    assert answer.redirect_chain, f"{path} {answer.status_code}"
    return " ".join(str(message) for message in answer.context["messages"])


# --- timeline ------------------------------------------------------------------------------------------


def test_the_timeline_shows_cause_author_message_size_and_labels(as_bob, prompt):
    html = page(as_bob, "agents/pilot/versions/")
    assert "Soul “<bdi>Calm</bdi>” revision 2" in html
    assert "Wiser" in html
    assert html.index("Version 2</a>") < html.index("Version 1</a>")
    newest = html[html.index("Version 2</a>") : html.index("Version 1</a>")]
    assert "latest" in newest
    assert "production" in newest
    assert "+2" in newest
    assert "Contains the hash of the previous version" in newest


def test_a_broken_link_of_the_chain_shows_on_the_timeline(as_bob, prompt):
    entries = as_bob.get("/w/harbour/agents/pilot/versions/").context["entries"]
    assert [entry.is_linked for entry in entries] == [True, True]
    latest = prompt_of(prompt.agent).latest
    forged = PromptVersion(
        **{
            field.attname: getattr(latest, field.attname)
            for field in PromptVersion._meta.concrete_fields
            if field.attname != "id"
        }
    )
    forged.number, forged.previous_hash = 3, "0" * 64
    forged.save()
    AgentPrompt.unscoped.filter(pk=prompt.pk).update(last_number=3)
    assert "Invalid: Contains the hash" in page(as_bob, "agents/pilot/versions/")


@pytest.mark.slow
def test_a_channel_is_chosen_in_the_address(as_bob, workspace, soul, deck):
    bridge = make_channel(workspace, "bridge")
    agent = make_agent(workspace, "mate", soul=soul, channels=[deck, bridge])
    for channel in ("deck", "bridge"):
        answer = as_bob.get(f"/w/harbour/agents/mate/versions/?channel={channel}")
        assert answer.context["prompt"].channel.slug == channel
    assert as_bob.get("/w/harbour/agents/mate/versions/?channel=nowhere").status_code == 200
    assert AgentPrompt.unscoped.filter(agent=agent).count() == 2


def test_a_failed_build_and_pending_changes_are_shown(as_bob, pilot, prompt):
    Agent.unscoped.filter(pk=pilot.pk).update(layout="gone")
    rebuild_agents(pilot.workspace_id, [pilot.pk])
    BuildCause(workspace_id=pilot.workspace_id, agent=pilot, cause={"kind": "soul", "by": "test"}).save()
    html = page(as_bob, "agents/pilot/versions/")
    assert "The last build failed" in html
    assert "The layout “gone” no longer exists." in html
    assert "1 change is waiting to be built" in html


def test_an_agent_without_a_channel_has_a_useful_empty_page(as_bob, workspace):
    make_agent(workspace, "mute")
    assert "as soon as the agent has a channel" in page(as_bob, "agents/mute/versions/")


def test_versions_of_an_archived_agent_stay_readable(as_bob, pilot, prompt):
    archive_record(pilot, by=BY)
    assert "is no longer on this channel" in page(as_bob, "agents/pilot/versions/")
    assert "Be brave." in page(as_bob, f"prompts/{prompt.pk}/versions/1/")


def test_two_selected_versions_redirect_to_a_shareable_url(as_bob, prompt):
    answer = as_bob.get("/w/harbour/agents/pilot/versions/?channel=deck&before=2&after=1")
    assert answer.url == f"/w/harbour/prompts/{prompt.pk}/diff/1/2/"
    bad = as_bob.get("/w/harbour/agents/pilot/versions/?channel=deck&before=x&after=1", follow=True)
    assert "Select two versions to compare." in bad.content.decode()


@pytest.mark.slow
def test_the_timeline_needs_few_queries_whatever_its_length(as_bob, prompt, soul, workspace):
    make_memory(workspace, "A fact.")  # versions with memories are looked up among erasures
    page(as_bob, "agents/pilot/versions/")  # the first visit of a session is noted in it
    counts = []
    for number in range(2):
        with CaptureQueriesContext(connection) as queries:
            page(as_bob, "agents/pilot/versions/")
        counts.append(len(queries))
        reword(soul, f"Be {number}.")
        make_memory(workspace, f"Fact {number}.")
    with CaptureQueriesContext(connection) as queries:
        page(as_bob, "agents/pilot/versions/")
    assert {*counts, len(queries)} == {counts[0]}
    assert len(queries) <= LIMIT + EVERY_PAGE


def test_pages_of_the_timeline_follow_the_numbers(as_bob, prompt, soul, monkeypatch):
    monkeypatch.setattr("prompts.publishing.versions.timeline.PAGE_SIZE", 2)
    reword(soul, "Be wise.")
    first = as_bob.get("/w/harbour/agents/pilot/versions/").context["entries"]
    last = as_bob.get("/w/harbour/agents/pilot/versions/?page=2").context["entries"]
    assert [entry.version.number for entry in first] == [3, 2]
    assert [(entry.version.number, entry.delta) for entry in last] == [(1, None)]
    assert all(entry.delta is not None for entry in first)


# --- one version ---------------------------------------------------------------------------------------


def test_a_version_shows_every_line_with_where_it_came_from(as_bob, prompt, soul):
    html = page(as_bob, f"prompts/{prompt.pk}/versions/1/")
    assert 'href="/w/harbour/souls/calm/history/1/"' in html
    assert "Be brave." in html
    assert "Recomputed from the stored version" in html
    assert '<span class="dr-slot">⟦now⟧</span>' in html


def test_markup_is_escaped_and_hidden_characters_are_shown(as_bob, prompt, workspace):
    make_memory(workspace, "<script>alert(1)</script> in\u202evisible")
    latest = prompt_of(prompt.agent).latest
    html = page(as_bob, f"prompts/{prompt.pk}/versions/{latest.number}/")
    assert "<script>alert" not in html
    assert 'class="dr-glyph"' in html
    assert "U+202E" in html


def test_the_downloaded_text_is_exact(as_bob, prompt, first):
    answer = as_bob.get(f"/w/harbour/prompts/{prompt.pk}/versions/1/text/")
    assert answer.headers["Content-Type"] == "text/markdown; charset=utf-8"
    assert 'filename="pilot-deck-v1.md"' in answer.headers["Content-Disposition"]
    assert answer.content.decode() == get_version_text(first)


def test_the_json_download_is_complete(as_bob, prompt, first, soul):
    data = json.loads(as_bob.get(f"/w/harbour/prompts/{prompt.pk}/versions/1/json/").content)
    assert "".join(segment.get("text", "") for segment in data["segments"]) == get_version_text(first)
    assert f"soul:{soul.pk}@1" in data["lockfile"]["parts"]
    assert (data["version"], data["hash"]) == (1, first.hash)


def test_a_tampered_row_is_shown_as_such(as_bob, prompt):
    with unguarded():
        by_hand("UPDATE prompts_promptversion SET message = 'forged'")
        html = page(as_bob, f"prompts/{prompt.pk}/versions/1/")
    assert "hash does not match" in html


def test_unknown_numbers_and_prompts_are_not_found(as_bob, as_mallory, prompt):
    for path in (
        f"prompts/{prompt.pk}/versions/3/",
        f"prompts/{prompt.pk}/versions/{10**30}/",
        f"prompts/{10**30}/versions/1/",
        f"prompts/{prompt.pk}/diff/1/9/",
        "agents/nobody/versions/",
        "holdings/soul/999999/",
        "holdings/task/1/",
        f"holdings/soul/{10**30}/",
    ):
        page(as_bob, path, 404)
    page(as_mallory, f"/w/elsewhere/prompts/{prompt.pk}/versions/1/", 404)


# --- two versions --------------------------------------------------------------------------------------


def test_a_diff_shows_sections_words_and_the_cache_prefix(as_bob, prompt):
    html = page(as_bob, f"prompts/{prompt.pk}/diff/1/2/")
    assert '<ins class="dr-diff-word">' in html
    assert "first differ in “Soul”" in html
    assert "+2" in html
    assert 'rel="prev"' not in html
    # The URL decides the order of the sides and whether the full text is shown.
    assert f"/prompts/{prompt.pk}/diff/2/1/" in html
    assert "Formatting" not in main_part(html)
    swapped = page(as_bob, f"prompts/{prompt.pk}/diff/2/1/?show=all")
    assert "Changes from version 2 to 1" in swapped
    assert f"/prompts/{prompt.pk}/diff/1/2/?show=all" in swapped
    assert "unchanged lines" not in swapped
    assert swapped.count("Unchanged") >= 1


def main_part(html: str) -> str:
    return html[html.index('id="main"') :]


def test_neighbours_lead_to_the_change_before_and_after(as_bob, prompt, soul):
    for text in ("Be wise.", "Be wiser."):
        reword(soul, text)
    html = page(as_bob, f"prompts/{prompt.pk}/diff/2/3/")
    assert f"/prompts/{prompt.pk}/diff/1/2/" in html
    assert f"/prompts/{prompt.pk}/diff/3/4/" in html
    assert 'rel="next"' not in page(as_bob, f"prompts/{prompt.pk}/diff/1/4/")


def test_the_preview_card_shows_the_first_changed_lines(as_bob, prompt, soul):
    reword(soul, "Be <b>bold</b>\u200b.\n" + "".join(f"Line {number}.\n" for number in range(20)))
    html = page(as_bob, f"prompts/{prompt.pk}/versions/3/peek/")
    assert "From version 2 to 3" in html
    assert "brave" in html
    assert "&lt;b&gt;bold" in html
    assert "U+200B" in html
    assert "more lines" in html
    assert "<html" not in html
    page(as_bob, f"prompts/{prompt.pk}/versions/1/peek/", 404)


def test_a_version_compared_with_itself_has_no_difference(as_bob, prompt):
    assert "The text is the same" in page(as_bob, f"prompts/{prompt.pk}/diff/1/1/")


def test_moved_segments_are_listed(as_bob, prompt):
    first, second = (make_responsibility(prompt.agent, title) for title in ("Watch", "Cook"))
    before = prompt_of(prompt.agent).latest.number
    move_responsibility(second, "up", by=BY)
    after = prompt_of(prompt.agent).latest.number
    assert after == before + 1
    html = page(as_bob, f"prompts/{prompt.pk}/diff/{before}/{after}/")
    assert "Moved without changes" in html
    assert "Moved within Responsibilities" in html
    assert first.pk < second.pk


# --- manual label moves --------------------------------------------------------------------------------


@pytest.mark.slow
def test_production_is_rolled_back_with_a_reason_and_follows_again(as_alice, prompt):
    back = f"prompts/{prompt.pk}/roll-back/"
    assert "from version 2 back to version 1" in page(as_alice, "agents/pilot/versions/")
    assert "Rolled back production to version 1" in submit(as_alice, back, {"note": "Too wise."})
    # There is no earlier version to roll back to.
    assert "Roll back production" not in page(as_alice, "agents/pilot/versions/")
    assert production(prompt) == 1
    assert "New builds do not change it" in page(as_alice, "agents/pilot/versions/")
    assert "Automatic releases resumed" in submit(as_alice, f"prompts/{prompt.pk}/unpin/")
    assert production(prompt) == 2
    move = LabelMove.unscoped.filter(prompt=prompt, reason="rollback").get()
    assert (move.note, move.author_label) == ("Too wise.", "alice@example.com")


def test_a_roll_back_without_a_reason_moves_nothing(as_alice, prompt):
    assert "required" in submit(as_alice, f"prompts/{prompt.pk}/roll-back/", {"note": " "})
    assert production(prompt) == 2


def test_production_goes_back_to_a_named_version(as_alice, prompt, soul):
    reword(soul, "Be wise.")
    html = page(as_alice, f"prompts/{prompt.pk}/versions/1/")
    assert "Roll back to version 1" in html
    submit(as_alice, f"prompts/{prompt.pk}/roll-back/", {"note": "Enough.", "to": "1"})
    assert production(prompt) == 1


def test_rolling_back_requires_a_reviewer(as_bob, as_reviewer, prompt):
    assert as_bob.post(f"/w/harbour/prompts/{prompt.pk}/roll-back/", {"note": "No."}).status_code == 403
    submit(as_reviewer, f"prompts/{prompt.pk}/roll-back/", {"note": "Yes."})
    assert production(prompt) == 1


@pytest.mark.slow
def test_a_label_is_added_moved_and_removed(as_bob, prompt):
    path = f"prompts/{prompt.pk}/versions"
    assert "“canary” now points to version 1." in submit(as_bob, f"{path}/1/label/", {"label": "canary"})
    seen = as_bob.get(f"/w/harbour/{path}/2/").context["label_form"].initial["seen"]
    assert "now points to version 2" in submit(as_bob, f"{path}/2/label/", {"label": "canary", "seen": seen})
    assert "removed." in submit(as_bob, f"prompts/{prompt.pk}/labels/canary/remove/")
    assert "no label “canary”" in submit(as_bob, f"prompts/{prompt.pk}/labels/canary/remove/")


@pytest.mark.slow
def test_a_label_moved_concurrently_is_not_overwritten(as_bob, prompt, by_alice):
    path = f"prompts/{prompt.pk}/versions/1/"
    seen = as_bob.get(f"/w/harbour/{path}").context["label_form"].initial["seen"]
    move_label(prompt, "canary", prompt_of(prompt.agent).latest, expected=None, by=by_alice)
    assert "moved after you opened this page" in submit(
        as_bob, f"{path}label/", {"label": "canary", "seen": seen}
    )
    assert PromptLabel.unscoped.get(name="canary").version.number == 2


@pytest.mark.slow
def test_reserved_and_invalid_labels_are_rejected(as_bob, prompt):
    messages = {
        "production": "Only builds, releases and rollbacks can move",
        "latest": "is reserved for the newest build",
        "Not A Label": "Label:",
        "": "required",
    }
    for label, message in messages.items():
        assert message in submit(as_bob, f"prompts/{prompt.pk}/versions/1/label/", {"label": label})
    assert PromptLabel.unscoped.count() == 1


def test_only_owners_move_a_protected_label_by_hand(as_bob, prompt, workspace, by_alice):
    protect_label(workspace, "canary", True, by=by_alice)
    messages = submit(as_bob, f"prompts/{prompt.pk}/versions/1/label/", {"label": "canary"})
    assert "is protected. Only owners can move it" in messages


@pytest.mark.slow
def test_a_manual_rebuild_shows_its_result(as_bob, pilot, prompt):
    assert "Nothing changed" in submit(as_bob, "agents/pilot/versions/rebuild/")
    archive_record(pilot, by=BY)
    assert "is archived" in submit(as_bob, "agents/pilot/versions/rebuild/")


def test_the_back_url_must_be_on_this_site(as_bob, prompt):
    for back, expected in (("/w/harbour/labels/", "/w/harbour/labels/"), ("//evil.example/", "/w/harbour/")):
        answer = as_bob.post("/w/harbour/agents/pilot/versions/rebuild/", {"back": back})
        assert answer.url.startswith(expected)


# --- versions on other pages ---------------------------------------------------------------------------


def test_a_record_lists_the_prompts_that_use_it(as_bob, prompt, soul, by_alice):
    roll_back([prompt_of(prompt.agent)], by=by_alice, note="Back.")
    html = page(as_bob, "souls/calm/")
    assert "Used in" in html
    assert f'href="/w/harbour/prompts/{prompt.pk}/versions/2/"' in html
    assert "since version 1" in page(as_bob, f"holdings/soul/{soul.pk}/")


@pytest.mark.slow
def test_an_edit_shows_how_many_prompts_it_rebuilt(as_bob, prompt, soul, settings):
    form = {"name": "Calm", "text": "Be wise.", "revision": "2"}
    assert "1 prompt rebuilt." in submit(as_bob, "souls/calm/edit/", form)
    settings.DRAMATIS_BUILD_AT_ONCE = 0
    form = {"name": "Calm", "text": "Be wiser.", "revision": "3"}
    assert "1 prompt is being rebuilt." in submit(as_bob, "souls/calm/edit/", form)


def test_an_edit_that_cannot_be_built_shows_an_error(as_bob, pilot, prompt, soul):
    Agent.unscoped.filter(pk=pilot.pk).update(layout="gone")
    form = {"name": "Calm", "text": "Be wise.", "revision": "2"}
    assert "could not be built and is unchanged" in submit(as_bob, "souls/calm/edit/", form)
