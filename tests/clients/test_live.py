"""The client and the real server: every call, and a server that is killed, frozen and started again."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dramatis_client import Problem, Unreachable
from dramatis_client.command import main
from personas.actors import Actor
from personas.agents.services import create_named_record
from personas.api_keys.format import ADMIN
from personas.api_keys.services import create_key, revoke_key
from personas.models import Memory, MemoryState, Task, Workspace
from prompts.builds.services import rebuild_agents
from prompts.erasure.services import erase_record
from prompts.models import LedgerEntry
from prompts.serving import ledger_writer
from skills.models import PushedFile, Source, SourceKind
from tests.clients.drivers import Blocking, Driver, Looping, Make, at
from tests.clients.live import LiveServer
from tests.factories import BY, make_memory, make_skill, make_task
from tests.prompts.serving.serving_stage import Stage, make_stage
from tests.workers import wait_for

pytestmark = pytest.mark.django_db(transaction=True)
SOURCE = Path(__file__).parents[2] / "clients" / "python" / "src"
LATER = 100


@pytest.fixture(scope="module")
def process(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    server = LiveServer(tmp_path_factory.mktemp("live") / "log")
    yield server
    server.kill()
    # Its connections end a moment after it, and a database in use cannot be removed.
    wait_for(server.has_left)


@pytest.fixture
def server(process: LiveServer, transactional_db: None) -> Iterator[LiveServer]:
    """Running, whatever the test before has done to it."""
    if not process.is_running:
        process.start()
    yield process
    # A database in use cannot be removed.
    ledger_writer.PROCESS_WRITER.close()


@pytest.fixture
def staged(workspace, server) -> Stage:
    return make_stage(workspace)


def statuses(staged: Stage) -> list[int]:
    rows = LedgerEntry.objects.in_workspace(staged.workspace).order_by("pk")
    return list(rows.values_list("status", flat=True))


# --- every call: both kinds of client one after the other, for each stage takes half a second to make -------

KINDS = (Blocking, Looping)


@pytest.fixture(name="client_of")
def a_client_of_a_kind(staged: Stage, server: LiveServer, make_either: Callable[..., Driver]) -> Make:
    """Makes clients of the kind that is named, with the key of the stage."""
    return lambda kind, **options: make_either(kind, server.url, staged.secret, **options)


def test_fetch_is_recorded_and_an_unchanged_one_as_well(staged, client_of):
    for kind in KINDS:
        before = len(staged.rows)
        client = client_of(kind)
        prompt = client.prompt()
        assert "Be brave." in prompt.text, kind
        assert prompt.version == 1
        assert prompt.blocks
        assert "".join(prompt.blocks) == prompt.text
        assert "".join([prompt.text[one.start : one.end] for one in prompt.segments]) == prompt.text
        at(client, time.time() + LATER)
        client.prompt()
        client.settle()
        assert not client.prompt().is_stale, kind
        assert statuses(staged)[before:] == [200, 304], kind
        [first, _] = staged.rows[before:]
        assert (prompt.ledger_id, prompt.served_digest) == (first.pk, first.served_digest), kind
        tells_whether_it_was_what_was_handed_out(client)


def tells_whether_it_was_what_was_handed_out(client: Driver) -> None:
    prompt = client.prompt()
    assert client.call("report", prompt)["is_last_handed"], type(client)
    other = client.call("report", prompt, text=f"{prompt.text} And be sly.")
    assert not other["is_last_handed"], type(client)


def test_a_new_version_comes_behind_and_a_rolled_back_one_need_not(staged, client_of):
    clients = [client_of(kind) for kind in KINDS]
    for client in clients:
        assert "Be brave." in client.prompt().text
    for edits, (words, older) in enumerate([("Be bold.", "Be brave."), ("Be brave.", "Be bold.")], 1):
        staged.edit(words)
        for client in clients:
            at(client, time.time() + edits * LATER)
            assert older in client.prompt().text, type(client)
            client.settle()
            assert words in client.prompt().text, type(client)
    assert statuses(staged)[:4] == [200] * 4


def test_every_other_call_does_what_it_says(staged, client_of):
    """Facts of a call, a memory, a step of a task, a skill and pushed files."""
    workspace, agent = staged.workspace, staged.agent
    steps = [{"title": "Fetch water"}, {"title": "Scrub"}]
    task = make_task(workspace, "Scrub the deck", agent=agent, steps=steps)
    make_skill(workspace, "tea", body="Boil water first.", agents=[agent])
    source = create_named_record(
        Source, workspace, {"label": "House", "source_kind": SourceKind.PUSHED}, by=BY
    )
    for kind in KINDS:
        client = client_of(kind)
        render_takes_facts_of_the_call(client, task)
        remember_proposes_one_memory(client, workspace)
        a_step_is_ticked_and_opened_again(client, task)
        a_skill_is_loaded_whole(client)
        files_are_pushed_and_let_go(client, source)


def render_takes_facts_of_the_call(client: Driver, task: Task) -> None:
    prompt = client.call("render", "pilot", "deck", task=task.number, append="Be quick about it.")
    assert "Scrub the deck" in prompt.text
    assert "Be quick about it." in prompt.text
    assert client.call("replay", prompt.ledger_id)["text"] == prompt.text
    with pytest.raises(Problem) as refused:
        client.call("render", "pilot", "deck", colour="red")
    assert (refused.value.status, refused.value.code) == (422, "invalid")
    assert refused.value.errors[0].pointer
    assert refused.value.request_id


def remember_proposes_one_memory(client: Driver, workspace: Workspace) -> None:
    before = set(Memory.objects.in_workspace(workspace).values_list("pk", flat=True))
    words = f"{type(client).__name__} likes tea."
    memory = client.call("remember", words, agent="pilot")
    [row] = Memory.objects.in_workspace(workspace).exclude(pk__in=before)
    assert (row.pk, row.text, row.state) == (memory.id, words, MemoryState.PROPOSED)


def a_step_is_ticked_and_opened_again(client: Driver, task: Task) -> None:
    said = client.call("tick", task.number, 1)
    assert [step["is_done"] for step in said["steps"]] == [False, True]
    client.call("tick", task.number, 1, is_done=False)
    assert [step.is_done for step in task.steps.all()] == [False, False]
    with pytest.raises(Problem) as refused:
        client.call("tick", task.number, 7)
    assert refused.value.status == 404


def a_skill_is_loaded_whole(client: Driver) -> None:
    assert "Boil water first." in client.call("skill", "pilot", "tea").body
    with pytest.raises(Problem) as refused:
        client.call("skill", "pilot", "coffee")
    assert refused.value.code == "not_found"


def files_are_pushed_and_let_go(client: Driver, source: Source) -> None:
    words = f"Be kinder, says {type(client).__name__}.\n"
    told = client.call("push", source.slug, {"AGENTS.md": "Be kind.\n", "SOUL.md": "Calm.\n"})
    assert told["taken"] == 2
    client.call("push", source.slug, {"AGENTS.md": words}, is_complete=True)
    rows = PushedFile.objects.in_workspace(source.workspace_id).select_related("content")
    assert [(row.path, row.content.text) for row in rows] == [("AGENTS.md", words)]


@pytest.fixture
def shell(staged: Stage, server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("DRAMATIS_URL", server.url)
    monkeypatch.setenv("DRAMATIS_KEY", staged.secret)
    return monkeypatch


def test_the_command_speaks_with_the_real_server(staged, shell, alice, tmp_path, capfd):
    source = create_named_record(
        Source, staged.workspace, {"label": "House", "source_kind": SourceKind.PUSHED}, by=BY
    )
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "AGENTS.md").write_text("Be kind.\n")
    assert main(["fetch", "pilot", "deck"]) == 0
    words = capfd.readouterr().out
    assert main(["render", "pilot", "deck", "--fact", "append=Be quick."]) == 0
    assert "Be quick." in capfd.readouterr().out
    assert main(["replay", str(staged.rows[0].pk)]) == 0
    assert capfd.readouterr().out == words
    assert main(["push", source.slug, str(tmp_path / "project")]) == 0
    assert "1 of 1 files pushed." in capfd.readouterr().err
    older = staged.rows[0].version.digest
    staged.edit("Be bold.")
    _, secret = create_key(staged.workspace, "Desk", {}, by=Actor.person(alice), kind=ADMIN)
    shell.setenv("DRAMATIS_KEY", secret)
    assert main(["diff", older, staged.prompt.latest.digest]) == 0
    changed = capfd.readouterr().out
    assert "- Be brave." in changed
    assert "+ Be bold." in changed
    assert main(["fetch", "nobody", "deck"]) == 1
    assert "404 not_found" in capfd.readouterr().err


# --- a server that goes away ---------------------------------------------------------------------------


@pytest.mark.hard
def test_a_killed_server_is_not_missed_and_its_return_is_noticed(staged, server, make_either, tmp_path):
    """Both kinds of client miss the same server: to start another takes seconds."""
    now = time.time()
    folders = {kind: {"cache_dir": tmp_path / kind.__name__} for kind in KINDS}
    clients = {
        kind: make_either(kind, server.url, staged.secret, attempts=9, **folders[kind]) for kind in KINDS
    }
    texts = {kind: client.prompt().text for kind, client in clients.items()}
    server.kill()
    for kind, client in clients.items():
        at(client, now + 1_000)
        for _ in range(50):
            held = client.prompt()
            assert (held.text, held.is_stale) == (texts[kind], True), kind
        assert make_either(kind, server.url, staged.secret, **folders[kind]).prompt().text == texts[kind]
        with pytest.raises(Unreachable):
            make_either(kind, server.url, staged.secret, attempts=1).prompt()
    staged.edit("Be bold.")
    # The first try is lost for certain, as nobody listens; a later one of the same name is carried out.
    with ThreadPoolExecutor(len(KINDS)) as elsewhere:
        told = [
            elsewhere.submit(client.call, "remember", kind.__name__, agent="pilot")
            for kind, client in clients.items()
        ]
        time.sleep(0.3)
        # In the main thread: a process that is to die with its parent dies with the thread that made it.
        server.start()
        assert [one.result(60).text for one in told] == [kind.__name__ for kind in KINDS]
    assert Memory.objects.in_workspace(staged.workspace).count() == len(KINDS)
    for client in clients.values():
        at(client, now + 1_100)
        client.prompt()
        client.settle()
        assert "Be bold." in client.prompt().text, type(client)


def test_a_frozen_server_is_waited_for_once(client_of, server):
    clients = [client_of(kind, timeout=0.5) for kind in KINDS]
    now = time.time()
    for client in clients:
        client.prompt()
    with server.frozen():
        for client in clients:
            at(client, now + 1_000)
            assert client.prompt().is_stale, type(client)
            begun = time.monotonic()
            for later in range(1_001, 1_041):
                at(client, now + later)
                assert client.prompt().is_stale, type(client)
            assert time.monotonic() - begun < 2, type(client)
    for client in clients:
        client.settle()
        at(client, now + 2_000)
        client.prompt()
        client.settle()
        assert not client.prompt().is_stale, type(client)


def kept_by(kind: type, folder: Path) -> Path:
    return folder / kind.__name__


def test_a_revoked_key_has_no_copies_any_more(staged, client_of, tmp_path):
    clients = {kind: client_of(kind, cache_dir=kept_by(kind, tmp_path)) for kind in KINDS}
    for client in clients.values():
        client.prompt()
    revoke_key(staged.key, by=BY)
    for kind, client in clients.items():
        at(client, time.time() + LATER)
        client.prompt()
        client.settle()
        with pytest.raises(Problem) as refused:
            client.prompt()
        assert (refused.value.status, refused.value.code) == (401, "bad_key"), kind
        assert not list(kept_by(kind, tmp_path).rglob("*.json")), kind


def test_erased_words_leave_the_copies(staged, client_of, tmp_path):
    memory = make_memory(staged.workspace, "Lives in Oslo.", agent=staged.agent)
    rebuild_agents(staged.workspace, [staged.agent.pk])
    clients = {kind: client_of(kind, cache_dir=kept_by(kind, tmp_path)) for kind in KINDS}
    copies = {}
    for kind, client in clients.items():
        assert "Oslo" in client.prompt().text, kind
        [copies[kind]] = kept_by(kind, tmp_path).rglob("*.json")
        assert b"Oslo" in copies[kind].read_bytes(), kind
    erase_record(memory, reason="They asked for it.", by=BY)
    for kind, client in clients.items():
        at(client, time.time() + LATER)
        client.prompt()
        client.settle()
        assert "Oslo" not in client.prompt().text, kind
        assert b"Oslo" not in copies[kind].read_bytes(), kind


BOT = """
import json, os, sys
from dramatis_client import Client

seen = []
for _ in range(40):
    with Client(os.environ["DRAMATIS_URL"], os.environ["DRAMATIS_KEY"], cache_dir=sys.argv[1]) as client:
        seen.append(client.prompt("pilot", "deck").version)
print(json.dumps(seen))
"""


@pytest.mark.hard
def test_two_processes_share_a_folder(staged, server, make_either, tmp_path):
    kept = tmp_path / "kept"
    told = {
        **os.environ,
        "PYTHONPATH": str(SOURCE),
        "DRAMATIS_URL": server.url,
        "DRAMATIS_KEY": staged.secret,
    }
    bots = [
        subprocess.Popen([sys.executable, "-c", BOT, str(kept)], env=told, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    for number in range(6):
        staged.edit(f"Be number {number}.")
    for bot in bots:
        out, _ = bot.communicate(timeout=60)
        assert bot.returncode == 0
        seen = json.loads(out)
        assert seen == sorted(seen)
    [path] = kept.rglob("*.json")
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    for kind in KINDS:
        last = make_either(kind, server.url, staged.secret, cache_dir=kept).prompt().version
        with server.frozen():
            held = make_either(kind, server.url, staged.secret, cache_dir=kept, timeout=0.5).prompt()
        assert held.version == last == 7, kind
