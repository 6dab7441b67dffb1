"""Build progress: numbers of prompts that wait, are rebuilt or failed, and the component that polls."""

import re
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from core.task_queue import breaker
from personas.models import Agent
from personas.records.services import archive_record, edit_record
from prompts.models import BuildCause
from prompts.publishing.builds.causes import request_rebuild
from prompts.publishing.builds.progress import BuildProgress, get_build_progress, parse_since
from prompts.publishing.builds.services import rebuild_agents
from tests.factories import BY, make_agent, make_channel, make_memory, make_soul
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
POLL = re.compile(r'hx-get="([^"]+)"')


def set_stage(shared: SharedCast) -> None:
    """Three agents with one soul, four prompts."""
    workspace = shared.workspace
    shared.soul = make_soul(workspace, text="Be brave.")
    deck, bridge = make_channel(workspace, "deck"), make_channel(workspace, "bridge")
    shared.crew = [
        make_agent(workspace, f"mate-{number}", soul=shared.soul, channels=channels)
        for number, channels in enumerate([[deck, bridge], [deck], [deck]], 1)
    ]


@pytest.fixture
def soul(stage):
    return stage.soul


@pytest.fixture
def crew(stage):
    return stage.crew


@pytest.fixture
def idle(settings, monkeypatch) -> None:
    """Leave all builds to workers and let no job reach them, so that a test builds explicitly."""
    settings.DRAMATIS_BUILD_AT_ONCE = 0
    monkeypatch.setattr(breaker, "open_until", float("inf"))


@pytest.fixture
def reworded(crew, soul, idle) -> Any:
    edit_record(soul, {"text": "Be wise."}, expected=soul.revision, by=BY)
    return crew


def progress(workspace: Any) -> BuildProgress:
    build_progress = get_build_progress(workspace)
    assert build_progress is not None
    return build_progress


def build(*agents: Agent) -> None:
    rebuild_agents(agents[0].workspace_id, [agent.pk for agent in agents])


def get_counts(build_progress: BuildProgress) -> tuple[int, int, int, int]:
    return build_progress.waiting, build_progress.rebuilt, build_progress.unbuilt, build_progress.total


def page(client: Client, path: str = "") -> str:
    response = client.get(f"/w/harbour/{path}")
    assert response.status_code == 200
    return response.content.decode()


def find_poll_url(html: str) -> str:
    match = POLL.search(html)
    assert match, "The page does not ask by itself."
    return match[1].replace("&amp;", "&")


def save(client: Client, text: str = "Be wise.", revision: int = 1) -> str:
    form = {"name": "Calm", "text": text, "revision": str(revision)}
    return client.post("/w/harbour/souls/calm/edit/", form, follow=True).content.decode()


# --- counts --------------------------------------------------------------------------------------------


def test_what_waits_turns_into_what_is_rebuilt(workspace, reworded):
    assert get_counts(progress(workspace)) == (4, 0, 0, 4)
    build(reworded[0])
    assert get_counts(progress(workspace)) == (2, 2, 0, 4)
    since = progress(workspace).since
    build(*reworded[1:])
    assert get_build_progress(workspace) is None
    assert get_counts(get_build_progress(workspace, since) or progress(workspace)) == (0, 4, 0, 4)


def test_without_pending_causes_progress_takes_one_query(workspace, crew):
    with CaptureQueriesContext(connection) as queries:
        assert get_build_progress(workspace) is None
    assert len(queries) == 1


def test_counting_takes_two_queries_however_many_wait(workspace, reworded):
    with CaptureQueriesContext(connection) as queries:
        get_build_progress(workspace)
    assert len(queries) == 2


def test_an_agent_that_changed_again_waits_again(workspace, reworded):
    build(reworded[0])
    make_memory(workspace, "The mast is painted.", agent=reworded[0])
    assert get_counts(progress(workspace)) == (4, 0, 0, 4)


def test_new_pairs_count_although_they_have_no_prompt_yet(workspace, idle):
    make_agent(workspace, "pilot", channels=[make_channel(workspace, "mast")])
    assert get_counts(progress(workspace)) == (1, 0, 0, 1)


def test_archived_agents_and_agents_without_a_channel_are_not_counted(workspace, reworded):
    archive_record(reworded[0], by=BY)
    mute = make_agent(workspace, "mute")
    request_rebuild(workspace, [mute.pk], by=BY)
    assert progress(workspace).waiting == 2
    build(*reworded)
    assert BuildCause.unscoped.count() == 1
    assert get_build_progress(workspace) is None


def test_other_workspaces_are_not_counted(workspace, elsewhere, reworded):
    make_agent(elsewhere, "pilot", channels=[make_channel(elsewhere, "deck")])
    assert progress(workspace).total == 4
    assert progress(elsewhere).total == 1


def test_a_long_wait_is_reported_as_slow(workspace, reworded):
    assert not progress(workspace).is_slow
    with time_machine.travel(timezone.now() + timedelta(minutes=3)):
        assert progress(workspace).is_slow


@pytest.mark.parametrize(
    "since", ["", "yesterday", "2026-01-01", "9999-12-31T00:00:00+00:00", "\x00", "1" * 400]
)
def test_an_invalid_since_parameter_is_ignored(since):
    assert parse_since(since) is None


# --- pages ---------------------------------------------------------------------------------------------


def test_a_wide_edit_says_how_many_prompts_are_being_rebuilt(as_bob, crew, settings, monkeypatch):
    settings.DRAMATIS_BUILD_AT_ONCE = 3
    monkeypatch.setattr(breaker, "open_until", float("inf"))
    html = save(as_bob)
    assert "“Calm” saved." in html
    assert "4 prompts are being rebuilt." in html
    assert "<strong>0 of 4</strong> prompts rebuilt." in html


@pytest.mark.slow
def test_the_page_follows_and_stops_by_itself(as_bob, crew, idle):
    address = find_poll_url(save(as_bob))
    assert as_bob.get(address).status_code == 204
    build(crew[0])
    news = as_bob.get(address).content.decode()
    assert "<strong>2 of 4</strong> prompts rebuilt." in news
    assert as_bob.get(find_poll_url(news)).status_code == 204
    build(*crew[1:])
    end = as_bob.get(find_poll_url(news)).content.decode()
    assert "All 4 prompts have been rebuilt." in end
    assert "hx-get" not in end


def test_builds_finished_before_the_page_loads_are_reported_once(as_bob, crew, idle):
    response = as_bob.post(
        "/w/harbour/souls/calm/edit/", {"name": "Calm", "text": "Be wise.", "revision": "1"}
    )
    assert response.status_code == 302
    build(*crew)
    assert "All 4 prompts have been rebuilt." in page(as_bob, "souls/calm/")
    assert "are rebuilt" not in page(as_bob, "souls/calm/")


@pytest.mark.slow
def test_everybody_sees_it_on_records_and_at_home(as_alice, reworded):
    for path in ("", "souls/calm/", "agents/mate-1/"):
        assert "<strong>0 of 4</strong> prompts rebuilt." in page(as_alice, path)
    build(*reworded)
    for path in ("", "souls/calm/", "agents/mate-1/"):
        html = page(as_alice, path)
        assert "prompts rebuilt." not in html, path
        # The fleet loads its chart once.
        assert all("/traffic/" in url for url in POLL.findall(html)), path


def test_what_could_not_be_built_is_listed_with_its_reason(as_bob, crew, idle):
    Agent.unscoped.filter(pk=crew[0].pk).update(layout="harbour")
    address = find_poll_url(save(as_bob))
    build(*crew)
    end = as_bob.get(address).content.decode()
    assert "2 of 4 prompts rebuilt." in end
    assert "The layout “harbour” no longer exists." in end
    assert 'href="/w/harbour/agents/mate-1/versions/?channel=bridge"' in end
    assert "This does not change what bots get." in end
    assert "hx-get" not in end


@pytest.mark.slow
def test_problems_stay_at_home_until_they_are_mended(as_bob, crew):
    assert "The layout “" not in page(as_bob)
    Agent.unscoped.filter(pk=crew[0].pk).update(layout="<b>harbour</b>")
    build(crew[0])
    assert "&lt;b&gt;harbour&lt;/b&gt;" in page(as_bob)
    Agent.unscoped.filter(pk=crew[0].pk).update(layout="dramatis")
    build(crew[0])
    assert "The layout “" not in page(as_bob)


@pytest.mark.slow
def test_many_problems_are_shown_in_part(as_bob, workspace, crew, idle):
    Agent.unscoped.update(layout="harbour")
    build(*crew)
    assert "Other builds failed too." not in page(as_bob, "rebuilding/")
    channel = make_channel(workspace)
    more = [make_agent(workspace, channels=[channel]) for _ in range(3)]
    Agent.unscoped.update(layout="harbour")
    build(*more)
    assert "Other builds failed too." in page(as_bob, "rebuilding/")


def test_slow_workers_are_reported_and_polled_less_often(as_bob, reworded):
    BuildCause.unscoped.update(at=timezone.now() - timedelta(minutes=3))
    html = page(as_bob)
    assert "Rebuilding is taking longer than expected" in html
    assert 'hx-trigger="every 10s"' in html


def test_an_invalid_query_is_answered_with_200(as_bob, crew):
    for query in ("", "?since=%00&seen=%00", "?since=9999-99-99", "?all=1", "?since=2026-11-15T00:00:00"):
        assert as_bob.get(f"/w/harbour/rebuilding/live/{query}").status_code == 200


def test_polling_takes_few_queries(as_bob, reworded):
    address = find_poll_url(page(as_bob))
    with CaptureQueriesContext(connection) as queries:
        assert as_bob.get(address).status_code == 204
    # Session, user, membership; oldest cause and counts.
    assert len(queries) <= 5, [query["sql"] for query in queries]
