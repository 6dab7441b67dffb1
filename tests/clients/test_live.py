"""The client against the real server: every call, and a server that is killed, suspended and restarted."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from dramatis_client import Problem, Unreachable
from dramatis_client.command import main
from personas.actors import Actor
from personas.agents.services import create_named_record
from personas.api_keys.format import ADMIN
from personas.api_keys.services import create_key, revoke_key
from personas.models import Memory, MemoryStatus, Task, Workspace
from prompts.assembly.layouts import LAYOUTS
from prompts.evidence.erasure.services import erase_record
from prompts.models import LedgerEntry
from prompts.publishing.builds.services import rebuild_agents
from skills.models import PushedFile, Source, SourceKind
from tests.clients.drivers import AsyncDriver, BlockingDriver, ClientFactory, Driver, set_clock
from tests.clients.live import LiveServer
from tests.factories import BY, make_memory, make_profile, make_skill, make_task
from tests.prompts.served_digests import is_recorded
from tests.prompts.serving.serving_stage import Stage, make_stage

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
SOURCE = Path(__file__).parents[2] / "clients" / "python" / "src"
LATER_SECONDS = 100


@pytest.fixture
def stage(workspace, server) -> Stage:
    return make_stage(workspace)


def statuses(stage: Stage) -> list[int]:
    rows = LedgerEntry.objects.in_workspace(stage.workspace).order_by("pk")
    return list(rows.values_list("status", flat=True))


# --- every call: both kinds of client in one test, because making a stage takes half a second ---------------

KINDS = (BlockingDriver, AsyncDriver)


@pytest.fixture
def make_client_of(
    stage: Stage, server: LiveServer, make_client_of_kind: Callable[..., Driver]
) -> ClientFactory:
    """Return a factory of clients of the given kind, with the key of the stage."""
    return lambda kind, **options: make_client_of_kind(kind, server.url, stage.secret, **options)


def test_fetches_and_304_responses_are_recorded(stage, make_client_of):
    for kind in KINDS:
        before = len(stage.rows)
        client = make_client_of(kind)
        prompt = client.prompt()
        assert "Be brave." in prompt.text, kind
        assert prompt.version == 1
        assert prompt.blocks
        assert "".join([block.text for block in prompt.blocks]) == prompt.text
        assert "".join([prompt.text[one.start : one.end] for one in prompt.segments]) == prompt.text
        set_clock(client, time.time() + LATER_SECONDS)
        client.prompt()
        client.wait_for_refreshes()
        assert not client.prompt().is_stale, kind
        assert statuses(stage)[before:] == [200, 304], kind
        [first, _] = stage.rows[before:]
        assert prompt.ledger_id == first.pk, kind
        assert is_recorded(first, prompt.served_digest), kind
        report_detects_changed_text(client)


def report_detects_changed_text(client: Driver) -> None:
    prompt = client.prompt()
    assert client.call("report", prompt)["is_last_served"], type(client)
    other = client.call("report", prompt, text=f"{prompt.text} And be sly.")
    assert not other["is_last_served"], type(client)


def test_a_version_is_fetched_by_its_number(stage, make_client_of):
    stage.edit("Be bold.")
    for kind in KINDS:
        client = make_client_of(kind)
        assert "Be brave." in client.prompt(version=1).text, kind
        assert "Be bold." in client.prompt().text, kind
        with pytest.raises(Problem) as refused:
            client.prompt(version=3)
        assert refused.value.status == 404, kind
    assert [row.label for row in stage.rows] == ["production@v1", "production"] * len(KINDS)


def test_a_new_version_is_fetched_in_the_background_and_so_is_a_roll_back(stage, make_client_of):
    clients = [make_client_of(kind) for kind in KINDS]
    for client in clients:
        assert "Be brave." in client.prompt().text
    for edits, (text, old_text) in enumerate([("Be bold.", "Be brave."), ("Be brave.", "Be bold.")], 1):
        stage.edit(text)
        for client in clients:
            set_clock(client, time.time() + edits * LATER_SECONDS)
            assert old_text in client.prompt().text, type(client)
            client.wait_for_refreshes()
            assert text in client.prompt().text, type(client)
    assert statuses(stage)[:4] == [200] * 4


def test_every_other_call(stage, make_client_of):
    """Render with facts, remember, tick, skill, pull and push."""
    workspace, agent = stage.workspace, stage.agent
    steps = [{"title": "Fetch water"}, {"title": "Scrub"}]
    task = make_task(workspace, "Scrub the deck", agent=agent, steps=steps)
    make_skill(workspace, "tea", body="Boil water first.", agents=[agent])
    source = create_named_record(
        Source, workspace, {"name": "House", "source_kind": SourceKind.PUSHED}, by=BY
    )
    for kind in KINDS:
        client = make_client_of(kind)
        render_takes_facts_of_the_call(client, task)
        remember_proposes_one_memory(client, workspace)
        a_step_is_ticked_and_opened_again(client, task)
        a_skill_is_loaded(client)
        files_are_pushed_and_removed(client, source)


def render_takes_facts_of_the_call(client: Driver, task: Task) -> None:
    prompt = client.call("render", "pilot", "deck", task=task.number, append="Be quick about it.")
    assert "Scrub the deck" in prompt.text
    assert "Be quick about it." in prompt.text
    with pytest.raises(Problem) as closed:
        client.call("replay", prompt.ledger_id)
    assert closed.value.status == 403
    with pytest.raises(Problem) as refused:
        client.call("render", "pilot", "deck", colour="red")
    assert (refused.value.status, refused.value.code) == (422, "invalid")
    assert refused.value.errors[0].pointer
    assert refused.value.request_id


def remember_proposes_one_memory(client: Driver, workspace: Workspace) -> None:
    before = set(Memory.objects.in_workspace(workspace).values_list("pk", flat=True))
    text = f"{type(client).__name__} likes tea."
    memory = client.call("remember", text, agent="pilot")
    [row] = Memory.objects.in_workspace(workspace).exclude(pk__in=before)
    assert (row.pk, row.text, row.status) == (memory.id, text, MemoryStatus.PROPOSED)


def a_step_is_ticked_and_opened_again(client: Driver, task: Task) -> None:
    document = client.call("complete_step", task.number, 1)
    assert [step["is_done"] for step in document["steps"]] == [False, True]
    client.call("complete_step", task.number, 1, is_done=False)
    assert [step.is_done for step in task.steps.all()] == [False, False]
    with pytest.raises(Problem) as refused:
        client.call("complete_step", task.number, 7)
    assert refused.value.status == 404


def a_skill_is_loaded(client: Driver) -> None:
    assert "Boil water first." in client.call("skill", "pilot", "tea").body
    [(name, text)] = client.call("pull", "pilot").items()
    assert (name, text[:15]) == ("tea", "---\nname: tea\nd")
    assert text.endswith("Boil water first.\n")
    with pytest.raises(Problem) as refused:
        client.call("skill", "pilot", "coffee")
    assert refused.value.code == "not_found"


def files_are_pushed_and_removed(client: Driver, source: Source) -> None:
    text = f"Be kinder, says {type(client).__name__}.\n"
    result = client.call("push", source.slug, {"AGENTS.md": "Be kind.\n", "SOUL.md": "Calm.\n"})
    assert result["stored"] == 2
    client.call("push", source.slug, {"AGENTS.md": text}, is_complete=True)
    rows = PushedFile.objects.in_workspace(source.workspace_id).select_related("content")
    assert [(row.path, row.content.text) for row in rows] == [("AGENTS.md", text)]


def test_a_time_filled_by_the_client_gives_the_bytes_of_the_server(stage, make_client_of):
    client = make_client_of(BlockingDriver)
    times = [
        datetime(2026, 12, 23, 0, 5, 9, tzinfo=UTC),
        datetime(2027, 7, 4, 23, 59, tzinfo=timezone(-timedelta(hours=9, minutes=30))),
    ]
    zones = ["", "Asia/Kathmandu"]
    for layout, zone in [(layout, zone) for layout in LAYOUTS for zone in zones]:
        profile = make_profile(stage.workspace, timezone=zone) if zone else None
        stage.change_layout(layout, user_profile=profile)
        prompt = client.prompt(ttl=0)
        assert prompt.layout == layout
        for now in times:
            rendered = client.call("render", "pilot", "deck", now=now)
            filled = prompt.fill(now=now)
            assert (filled.text, filled.blocks, filled.segments) == (
                rendered.text,
                rendered.blocks,
                rendered.segments,
            ), (layout, zone)
        has_time = layout in {"dramatis", "nova", "pi"}
        assert (prompt.fill(now=times[0]).text != prompt.text) is has_time, layout
    assert client.call("report", client.prompt(ttl=0).fill(now=times[0]))["is_last_served"]


@pytest.fixture
def shell_environment(
    stage: Stage, server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> pytest.MonkeyPatch:
    monkeypatch.setenv("DRAMATIS_URL", server.url)
    monkeypatch.setenv("DRAMATIS_KEY", stage.secret)
    return monkeypatch


def test_the_command_works_with_the_real_server(stage, shell_environment, alice, tmp_path, capfd):
    source = create_named_record(
        Source, stage.workspace, {"name": "House", "source_kind": SourceKind.PUSHED}, by=BY
    )
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "AGENTS.md").write_text("Be kind.\n")
    assert main(["fetch", "pilot", "deck"]) == 0
    text = capfd.readouterr().out
    assert main(["render", "pilot", "deck", "--fact", "append=Be quick."]) == 0
    assert "Be quick." in capfd.readouterr().out
    assert main(["push", source.slug, str(tmp_path / "project")]) == 0
    assert "1 of 1 files pushed." in capfd.readouterr().err
    old_digest = stage.rows[0].version.digest
    stage.edit("Be bold.")
    _, secret = create_key(stage.workspace, "Desk", {}, by=Actor.person(alice), kind=ADMIN)
    shell_environment.setenv("DRAMATIS_KEY", secret)
    assert main(["replay", str(stage.rows[0].pk)]) == 0
    assert capfd.readouterr().out == text
    assert main(["diff", old_digest, stage.prompt.latest.digest]) == 0
    changed = capfd.readouterr().out
    assert "- Be brave." in changed
    assert "+ Be bold." in changed
    assert main(["fetch", "nobody", "deck"]) == 1
    assert "404 not_found" in capfd.readouterr().err


# --- a server that goes away ---------------------------------------------------------------------------


@pytest.mark.hard
def test_cached_prompts_survive_a_killed_server_and_refresh_after_its_restart(
    stage, server, make_client_of_kind, tmp_path
):
    """Both kinds of client use the same server, because starting one takes seconds."""
    now = time.time()
    folders = {kind: {"cache_dir": tmp_path / kind.__name__} for kind in KINDS}
    clients = {
        kind: make_client_of_kind(kind, server.url, stage.secret, attempts=9, **folders[kind])
        for kind in KINDS
    }
    texts = {kind: client.prompt().text for kind, client in clients.items()}
    server.kill()
    for kind, client in clients.items():
        set_clock(client, now + 1_000)
        for _ in range(50):
            prompt = client.prompt()
            assert (prompt.text, prompt.is_stale) == (texts[kind], True), kind
        assert (
            make_client_of_kind(kind, server.url, stage.secret, **folders[kind]).prompt().text == texts[kind]
        )
        with pytest.raises(Unreachable):
            make_client_of_kind(kind, server.url, stage.secret, attempts=1).prompt()
    stage.edit("Be bold.")
    # The first attempt fails, as no server listens; a retry with the same Idempotency-Key succeeds.
    with ThreadPoolExecutor(len(KINDS)) as pool:
        futures = [
            pool.submit(client.call, "remember", kind.__name__, agent="pilot")
            for kind, client in clients.items()
        ]
        time.sleep(0.3)
        # In the main thread: a process with a parent-death signal dies with the thread that started it.
        server.start()
        assert [future.result(60).text for future in futures] == [kind.__name__ for kind in KINDS]
    assert Memory.objects.in_workspace(stage.workspace).count() == len(KINDS)
    for client in clients.values():
        set_clock(client, now + 1_100)
        client.prompt()
        client.wait_for_refreshes()
        assert "Be bold." in client.prompt().text, type(client)


def test_a_suspended_server_blocks_only_one_call(make_client_of, server):
    clients = [make_client_of(kind, timeout=3) for kind in KINDS]
    now = time.time()
    for client in clients:
        client.prompt()
    with server.frozen():
        for client in clients:
            set_clock(client, now + 1_000)
            assert client.prompt().is_stale, type(client)
            started_at = time.monotonic()
            for later in range(1_001, 1_041):
                set_clock(client, now + later)
                assert client.prompt().is_stale, type(client)
            # If each call waited, that would be two minutes.
            assert time.monotonic() - started_at < 60, type(client)
    for client in clients:
        client.wait_for_refreshes()
        set_clock(client, now + 2_000)
        client.prompt()
        client.wait_for_refreshes()
        assert not client.prompt().is_stale, type(client)


def cache_folder(kind: type, folder: Path) -> Path:
    return folder / kind.__name__


def test_a_revoked_key_loses_its_copies(stage, make_client_of, tmp_path):
    clients = {kind: make_client_of(kind, cache_dir=cache_folder(kind, tmp_path)) for kind in KINDS}
    for client in clients.values():
        client.prompt()
    revoke_key(stage.key, by=BY)
    for kind, client in clients.items():
        set_clock(client, time.time() + LATER_SECONDS)
        client.prompt()
        client.wait_for_refreshes()
        with pytest.raises(Problem) as refused:
            client.prompt()
        assert (refused.value.status, refused.value.code) == (401, "invalid_key"), kind
        assert not list(cache_folder(kind, tmp_path).rglob("*.json")), kind


def test_erased_text_leaves_the_copies(stage, make_client_of, tmp_path):
    memory = make_memory(stage.workspace, "Lives in Oslo.", agent=stage.agent)
    rebuild_agents(stage.workspace, [stage.agent.pk])
    clients = {kind: make_client_of(kind, cache_dir=cache_folder(kind, tmp_path)) for kind in KINDS}
    cache_files = {}
    for kind, client in clients.items():
        assert "Oslo" in client.prompt().text, kind
        [cache_files[kind]] = cache_folder(kind, tmp_path).rglob("*.json")
        assert b"Oslo" in cache_files[kind].read_bytes(), kind
    erase_record(memory, reason="They asked for it.", by=BY)
    for kind, client in clients.items():
        set_clock(client, time.time() + LATER_SECONDS)
        client.prompt()
        client.wait_for_refreshes()
        assert "Oslo" not in client.prompt().text, kind
        assert b"Oslo" not in cache_files[kind].read_bytes(), kind


BOT = """
import json, sys
from dramatis_client import Client

versions = []
for _ in range(40):
    with Client(cache_dir=sys.argv[1]) as client:
        versions.append(client.get_prompt("pilot", "deck").version)
print(json.dumps(versions))
"""


@pytest.mark.hard
def test_two_processes_share_a_folder(stage, server, make_client_of_kind, tmp_path):
    folder = tmp_path / "kept"
    environment = {
        **os.environ,
        "PYTHONPATH": str(SOURCE),
        "DRAMATIS_URL": server.url,
        "DRAMATIS_KEY": stage.secret,
    }
    bots = [
        subprocess.Popen([sys.executable, "-c", BOT, str(folder)], env=environment, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    for number in range(6):
        stage.edit(f"Be number {number}.")
    for bot in bots:
        out, _ = bot.communicate(timeout=60)
        assert bot.returncode == 0
        versions = json.loads(out)
        assert versions == sorted(versions)
    [path] = folder.rglob("*.json")
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    for kind in KINDS:
        last = make_client_of_kind(kind, server.url, stage.secret, cache_dir=folder).prompt().version
        with server.frozen():
            prompt = make_client_of_kind(
                kind, server.url, stage.secret, cache_dir=folder, timeout=0.5
            ).prompt()
        assert prompt.version == last == 7, kind
