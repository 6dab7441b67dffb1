"""`manage.py up`: all processes start and stop, and none is left over."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import pytest

from project.management.commands.up import Command
from project.redis_client import connect_redis
from project.supervisor.children import AlreadyRunning, lock_var
from project.supervisor.orphan_killer import read_process_groups
from project.supervisor.supervisor import Supervisor
from project.supervisor.valkey import start_valkey
from tests.factories import make_user
from tests.project.deployment.production_settings import ROOT
from tests.project.supervisor.first_start import copy_start, keep_start

# An environment variable that only our processes have, so that leftovers can be found.
MARK = "DRAMATIS_TEST_MARK"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def environment(var, mark):
    variables = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    return variables | {"DRAMATIS_VAR": str(var), MARK: mark}


def start_up(var, port, *arguments):
    command = [sys.executable, "manage.py", "up", "--port", str(port), "--empty", *arguments]
    env = environment(var, str(var))
    return subprocess.Popen(
        command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def running(mark):
    """Return running processes with the mark in their environment, without zombies."""
    marker = f"{MARK}={mark}".encode()
    commands = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if marker in (entry / "environ").read_bytes().split(b"\0"):
                commands.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return commands


def wait_for(condition, seconds):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.1)
    return False


def answers(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


@contextmanager
def product(var):
    """Start the product in this folder, and wait until all processes are running."""
    port = free_port()
    process = start_up(var, port)
    # Web, its worker process, the Celery workers with two pool children and one, beat, watcher, orphan
    # killer, and up itself; Valkey writes its title over its environment.
    assert wait_for(lambda: answers(port, "/readyz") and len(running(str(var))) >= 11, 180), running(str(var))
    try:
        yield process, port
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def stops_cleanly(var, number):
    with product(var) as (process, port):
        process.send_signal(number)
        output = process.communicate(timeout=60)[0]
    assert process.returncode == 0
    assert f"Dramatis is running at http://localhost:{port}/" in output
    assert running(str(var)) == []


needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="leftovers are looked for in /proc")


@needs_proc
@pytest.mark.hard
def test_it_stops_cleanly_and_a_killed_one_leaves_nothing_behind(tmp_path):
    """The first start creates the tables; the other tests use a cached copy of them."""
    stops_cleanly(tmp_path, signal.SIGTERM)
    keep_start(tmp_path / "dramatis.sqlite3")
    with product(tmp_path) as (process, port):
        process.kill()
        process.wait()
        assert wait_for(lambda: not running(str(tmp_path)), 60), running(str(tmp_path))
        assert not answers(port, "/healthz")


def test_a_second_start_in_the_same_folder_names_the_first(tmp_path):
    """A second broker would replace the socket of the first one."""
    with lock_var(tmp_path, 8123):
        output, _ = (process := start_up(tmp_path, free_port())).communicate(timeout=120)
        assert process.returncode != 0
        assert f"already running with the data in {tmp_path} (process {os.getpid()}, port 8123)" in output
    with lock_var(tmp_path, 8124) as file:
        assert Path(file.name).read_text() == f"process {os.getpid()}, port 8124\n"


def test_the_lock_of_a_killed_process_is_free(tmp_path):
    script = "from pathlib import Path; from project.supervisor.children import lock_var; import os, signal; "
    script += f"held = lock_var(Path({str(tmp_path)!r}), 1); os.kill(os.getpid(), signal.SIGKILL)"
    env = environment(tmp_path, str(tmp_path)) | {"DJANGO_SETTINGS_MODULE": "project.settings"}
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=env, check=False).returncode == -9
    lock_var(tmp_path, 2).close()


@pytest.mark.planted
def test_a_start_without_the_lock_is_detected(tmp_path, monkeypatch):
    monkeypatch.setattr("fcntl.flock", lambda *_: None)
    with lock_var(tmp_path, 1):
        lock_var(tmp_path, 2).close()
    monkeypatch.undo()
    with lock_var(tmp_path, 1), pytest.raises(AlreadyRunning):
        lock_var(tmp_path, 2)


def test_the_broker_writes_nothing_to_disk(tmp_path):
    """A server with a log rejects every command on a full disk, and the Celery worker ends."""
    (tmp_path / "data").mkdir()
    process = start_valkey(tmp_path / "s", tmp_path / "data")
    try:
        client = connect_redis(f"unix://{tmp_path / 's'}")
        for number in range(100):
            client.set(f"key-{number}", "x" * 1_000)
        assert client.config_get("appendonly", "save") == {"appendonly": "no", "save": ""}
        assert list((tmp_path / "data").iterdir()) == []
    finally:
        process.kill()
        process.wait()


def test_an_empty_start_says_how_to_create_the_first_account(db):
    command = Command(stdout=StringIO())
    command.print_welcome("127.0.0.1", 8100, "")
    text = command.stdout.getvalue()
    assert "Create the first account at http://localhost:8100/accounts/signup/" in text
    assert "Its confirmation email is at http://localhost:8100/dev/mail/" in text
    make_user("Alice")
    command = Command(stdout=StringIO())
    command.print_welcome("127.0.0.1", 8100, "")
    assert "first account" not in command.stdout.getvalue()


@needs_proc
@pytest.mark.hard
def test_control_c_stops_it_cleanly(tmp_path):
    copy_start(tmp_path / "dramatis.sqlite3")
    stops_cleanly(tmp_path, signal.SIGINT)


@needs_proc
@pytest.mark.hard
def test_one_child_ends_and_all_end(tmp_path):
    copy_start(tmp_path / "dramatis.sqlite3")
    with product(tmp_path) as (process, _):
        subprocess.run(["kill", "-9", str(child_named("beat", process.pid))], check=True)
        output = process.communicate(timeout=60)[0]
    assert process.returncode != 0
    assert "The beat process exited unexpectedly" in output
    assert running(str(tmp_path)) == []


@pytest.fixture
def supervisor():
    """Return a supervisor; it installs signal handlers, which are restored afterwards."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    supervisor = Supervisor()
    yield supervisor
    if supervisor.orphan_killer.poll() is None:
        supervisor.stop()
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.slow
def test_the_first_child_to_end_is_named_and_the_others_are_stopped(supervisor):
    """The same with small processes, so that it runs every time; those of the product start slowly."""
    for name, seconds in (("web", "60"), ("beat", "0.1")):
        supervisor.start(name, ["sleep", seconds], dict(os.environ))
    assert supervisor.watch() == "beat"
    supervisor.stop()
    assert supervisor.children["web"].poll() is not None


HOLDER = """
import os, time
from project.supervisor.supervisor import Supervisor
Supervisor().start("web", ["sh", "-c", "sleep 60 & sleep 60"], dict(os.environ))
time.sleep(60)
"""


@pytest.mark.slow
@needs_proc
def test_a_killed_parent_leaves_neither_children_nor_theirs_behind(tmp_path):
    """The same with small processes, so that it runs every time; a hard test kills the product itself."""
    mark = str(tmp_path)
    parent = subprocess.Popen([sys.executable, "-c", HOLDER], cwd=ROOT, env=environment(tmp_path, mark))
    # The process itself, the orphan killer, a shell and two sleeps.
    assert wait_for(lambda: len(running(mark)) == 5, 120), running(mark)
    parent.kill()
    parent.wait()
    assert wait_for(lambda: not running(mark), 60), running(mark)


def child_named(word, parent):
    """Return the process id of the child, once it has executed its program."""
    for _ in range(100):
        # -ww: long paths of a checkout must not push the word out of the line.
        listing = subprocess.run(
            ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(parent)],
            capture_output=True,
            text=True,
            check=True,
        )
        pids = [int(line.split()[0]) for line in listing.stdout.splitlines() if f" {word} " in line]
        if pids:
            return pids[0]
        time.sleep(0.1)
    raise AssertionError(f"No child named {word} among:\n{listing.stdout}")


def refused(var, port):
    process = start_up(var, port)
    output = process.communicate(timeout=60)[0]
    assert process.returncode != 0
    assert "Traceback" not in output
    return output.strip()


@pytest.mark.hard
def test_a_used_port_is_one_clear_line(tmp_path):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        output = refused(tmp_path, port)
    assert output.splitlines() == [
        f"CommandError: Cannot listen on 127.0.0.1:{port}: Address already in use. Try --port."
    ]


@pytest.mark.hard
def test_an_unreadable_database_is_one_clear_line(tmp_path):
    (tmp_path / "dramatis.sqlite3").write_text(
        "this is no database, but long enough to be taken for one" * 20
    )
    output = refused(tmp_path, free_port())
    assert len(output.splitlines()) == 1
    assert "dramatis.sqlite3 cannot be used: file is not a database" in output


def test_the_orphan_killer_kills_all_process_groups():
    assert read_process_groups(["12\n", "13\n"]) == [12, 13]


def test_the_orphan_killer_does_nothing_after_a_clean_stop():
    assert read_process_groups(["12\n", "13\n", "done\n"]) == []


LINK = re.compile(r"http://(?:localhost|127\.0\.0\.1)[^\s)>\"'`\]]*")


@pytest.mark.hard
def test_links_in_the_prompts_of_a_first_start_lead_to_its_own_port(tmp_path):
    """The demo is loaded before the web server starts; its prompts have the URL that this server gets."""
    port = free_port()
    env = environment(tmp_path, str(tmp_path))
    command = [sys.executable, "manage.py", "up", "--port", str(port)]
    process = subprocess.Popen(
        command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        assert next(one for one in process.stdout or () if "Bearer" in one)
        create = [sys.executable, "manage.py", "create_key", "--workspace", "larkfell"]
        create += ["--verb", "fetch", "--verb", "read"]
        key = subprocess.run(
            create, cwd=ROOT, env=env, capture_output=True, text=True, check=True
        ).stdout.strip()

        def get(url):
            request = urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"})  # noqa: S310  # http
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310  # http
                return answer.status, answer.read().decode()

        base = f"http://localhost:{port}/api/v1"
        prompts = json.loads(get(f"{base}/prompts?limit=200")[1])["items"]
        texts = [
            json.loads(get(f"{base}/agents/{prompt['agent']}/channels/{prompt['channel']}/prompt")[1])["text"]
            for prompt in prompts
            if any(label["name"] == "production" for label in prompt["labels"])
        ]
        links = {link.rstrip(".,;") for text in texts for link in LINK.findall(text)}
        assert links
        assert {link for link in links if not link.startswith(f"http://localhost:{port}/")} == set()
        assert {get(link)[0] for link in links} == {200}
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
