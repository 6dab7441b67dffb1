"""R13 end to end: an edited file reaches bots exactly once, although worker and broker were lost.

tests/skills/refresh tests each kind of failure for the refresh alone.
"""

import time

import pytest

from personas.api_keys.services import create_key
from prompts.models import PromptVersion
from skills.agent_context.services import choose_context
from tests.factories import BY, make_agent, make_channel, make_source, refreshed
from tests.prompts.serving.serving_stage import fetch
from tests.skills.job_stage import job_stage, request_run
from tests.workers import wait_for

pytestmark = pytest.mark.django_db(transaction=True)

LIVE_SECONDS = 60.0


@pytest.fixture
def stage(tmp_path):
    with job_stage(tmp_path, tmp_path) as stage:
        yield stage


@pytest.fixture
def pilot(workspace):
    return make_agent(workspace, "pilot", channels=[make_channel(workspace, "deck")])


@pytest.fixture
def source(workspace, pilot, tmp_path, settings):
    """A source that the agent uses."""
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "AGENTS.md").write_text("Be kind.\n")
    source = make_source(workspace, folder, refresh_minutes=None, harnesses=["pi"])
    choose_context(pilot, source, "pi", working_directory="", expected=pilot.revision, by=BY)
    refreshed(source)
    return source


@pytest.mark.hard
@pytest.mark.promise("R13")
def test_an_edited_file_is_served_once_although_worker_and_broker_were_lost(
    stage, source, tmp_path, record_property
):
    versions = PromptVersion.objects.in_workspace(source.workspace).filter(prompt__agent__slug="pilot")
    _, secret = create_key(source.workspace, "Reception", {}, by=BY)
    assert "Be kind." in fetch(secret).text
    before = versions.count()
    worker = stage.worker()
    stage.gate().touch()
    (tmp_path / "files" / "AGENTS.md").write_text("Be very kind.\n")
    request_run(source)
    assert stage.wait_at(), stage.log()
    began = time.monotonic()
    worker.kill()
    stage.flush()
    stage.gate().unlink()
    stage.worker()
    stage.beat()
    assert wait_for(lambda: "Be very kind." in fetch(secret).text, LIVE_SECONDS), stage.log()
    took = time.monotonic() - began
    # Time for redelivered jobs to run.
    time.sleep(2)
    record_property("measured", f"worker killed and broker flushed: the new text live after {took:.0f} s")
    assert versions.count() == before + 1
    assert took <= LIVE_SECONDS
