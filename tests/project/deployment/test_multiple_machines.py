"""Several web and worker processes with one database and one broker: no duplicate builds, no stale access."""

import re
from threading import Barrier, Thread

import httpx
import pytest
from django.conf import settings
from django.db import connection

from personas.actors import Actor
from personas.api_keys.format import ADMIN
from personas.api_keys.services import create_key
from personas.models import Agent, Soul, Workspace
from personas.records.services import edit_record
from prompts.publishing.builds import services as builds_services
from prompts.tasks import rebuild_prompts_job, sweep_prompts_job
from tests.clients.live import LiveServer
from tests.factories import BY, signed_in
from tests.project.deployment.machines import Machines, crew_of, machines, surplus
from tests.skills.job_stage import job_stage

pytestmark = [pytest.mark.redis, pytest.mark.django_db(transaction=True)]


# --- concurrent builders in one process ----------------------------------------------------------------


@pytest.fixture
def crew(workspace: Workspace, tmp_path, settings) -> Soul:
    """Return the changed soul of three agents that are not rebuilt yet."""
    with job_stage(tmp_path, tmp_path):
        soul, _ = crew_of(workspace, 3)
        settings.DRAMATIS_BUILD_AT_ONCE = 0
        edit_record(soul, {"text": "Be brave."}, expected=soul.revision, by=BY)
    return soul


def build_together(workspace: Workspace, builders: int) -> None:
    keys = list(Agent.objects.in_workspace(workspace).values_list("pk", flat=True))
    gate = Barrier(builders)

    def build() -> None:
        gate.wait(20)
        builds_services.rebuild_agents(workspace, keys)
        connection.close()

    threads = [Thread(target=build) for _ in range(builders)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_builders_that_meet_add_one_version(crew, workspace):
    build_together(workspace, 4)
    assert not surplus(workspace, 2)


@pytest.mark.planted
def test_builders_that_do_not_look_at_the_last_version_are_found(crew, workspace, monkeypatch):
    lock_prompts = builds_services.lock_or_create_prompts

    def forgetful(*args):
        rows = lock_prompts(*args)
        for row in rows.values():
            row.latest = None
        return rows

    monkeypatch.setattr(builds_services, "lock_or_create_prompts", forgetful)
    build_together(workspace, 2)
    assert set(surplus(workspace, 2)) == {"mate-0", "mate-1", "mate-2"}


# --- two web servers, two workers ----------------------------------------------------------------------

AGENTS, EDITS = 30, 4


@pytest.fixture(scope="module")
def machines_under_test(django_db_setup, tmp_path_factory):
    with machines(tmp_path_factory.mktemp("machines")) as machines_under_test:
        yield machines_under_test


def admin_key(workspace: Workspace, alice) -> str:
    return create_key(workspace, "Script", {}, by=Actor.person(alice), kind=ADMIN)[1]


def rewrite(machines_under_test: Machines, key: str, soul: Soul, text: str) -> None:
    """Read from one web server and write to the other."""
    path = f"/api/v1/souls/{soul.slug}"
    read = machines_under_test.ask("GET", path, key)
    answer = machines_under_test.ask(
        "PATCH", path, key, json={"text": text}, headers={"If-Match": read.headers["ETag"]}
    )
    assert answer.status_code == 200, answer.text


@pytest.mark.hard
def test_every_change_is_built_once(machines_under_test, workspace, alice):
    soul, _ = crew_of(workspace, AGENTS)
    key = admin_key(workspace, alice)
    everybody = list(Agent.objects.in_workspace(workspace).values_list("pk", flat=True))
    for number in range(EDITS):
        rewrite(machines_under_test, key, soul, f"Be brave, {number}.")
        # Duplicate messages, and two schedulers where there should be one.
        for _ in range(2):
            rebuild_prompts_job.delay(workspace.pk, everybody)
            sweep_prompts_job.delay()
        machines_under_test.wait_for_rest(workspace)
        assert not surplus(workspace, number + 2), machines_under_test.stage.log()
    for web in machines_under_test.webs:
        page = machines_under_test.ask("GET", "/api/v1/agents/mate-7/channels/deck/prompt", key, web)
        assert f"Be brave, {EDITS - 1}." in page.text
    took_part = [
        worker.log.read_text().count("rebuild_prompts_job") for worker in machines_under_test.stage.processes
    ]
    assert all(took_part), took_part


@pytest.mark.hard
def test_what_is_ended_at_one_web_is_ended_at_the_other(machines_under_test, workspace, alice):
    crew_of(workspace, 1)
    key = admin_key(workspace, alice)
    row, bot = create_key(workspace, "Bot", {}, by=Actor.person(alice))
    one, other = machines_under_test.webs
    fetch = "/api/v1/agents/mate-0/channels/deck/prompt"
    for _ in range(20):
        assert {
            machines_under_test.ask("GET", fetch, bot, web).status_code for web in machines_under_test.webs
        } == {200}
    assert machines_under_test.ask("POST", f"/api/v1/keys/{row.pk}:revoke", key, one).status_code == 204
    assert [machines_under_test.ask("GET", fetch, bot, web).status_code for web in (other, one)] == [401, 401]


@pytest.mark.hard
def test_who_leaves_at_one_web_has_left_the_other(machines_under_test, workspace, alice):
    one, other = machines_under_test.webs
    name = settings.SESSION_COOKIE_NAME
    session = f"{name}={signed_in(alice).cookies[name].value}"

    def status(web: LiveServer) -> int:
        return httpx.get(f"{web.url}/profile/", headers={"Cookie": session}, timeout=20).status_code

    assert [status(web) for web in machines_under_test.webs] == [200, 200]
    form = httpx.get(f"{one.url}/accounts/logout/", headers={"Cookie": session}, timeout=20)
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form.text)
    assert token
    both = f"{session}; {settings.CSRF_COOKIE_NAME}={form.cookies[settings.CSRF_COOKIE_NAME]}"
    data = {"csrfmiddlewaretoken": token[1]}
    left = httpx.post(f"{one.url}/accounts/logout/", data=data, headers={"Cookie": both}, timeout=20)
    assert left.status_code == 302
    assert [status(web) for web in (other, one)] == [302, 302]
