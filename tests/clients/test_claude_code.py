"""The hook of the Claude Code plugin against the real server."""

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from prompts.evidence.drift.details import parse_report_details
from prompts.evidence.drift.selectors import list_bots
from prompts.models import BotStatus, DigestReport
from tests.clients.live import LiveServer
from tests.prompts.serving.serving_stage import Stage, make_stage

pytestmark = pytest.mark.django_db(transaction=True)
PLUGIN = Path(__file__).parents[2] / "clients" / "claude-code"
Hook = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def stage(workspace, server) -> Stage:
    return make_stage(workspace, "Be brave.\nBe kind.")


def write_connection(home: Path, url: str, key: str, mode: int = 0o600) -> Path:
    path = home / ".config/dramatis/claude-code.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"url": url, "key": key}))
    path.chmod(mode)
    return path


@pytest.fixture
def run_hook(
    stage: Stage, server: LiveServer, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Hook:
    """Return a function that runs the hook as Claude Code does, when it has loaded a file of the project."""
    hooks = json.loads((PLUGIN / "hooks" / "hooks.json").read_text())["hooks"]
    [matcher] = hooks["InstructionsLoaded"]
    [hook] = matcher["hooks"]
    command = hook["command"].replace("python3", sys.executable, 1)
    home = tmp_path_factory.mktemp("home")

    def run(
        name: str = "CLAUDE.md",
        plugin: Path = PLUGIN,
        url: str = server.url,
        key: str = stage.secret,
        **settings: str,
    ) -> Any:
        write_connection(home, url, key)
        event = {
            "session_id": "abc123",
            "cwd": str(tmp_path),
            "hook_event_name": "InstructionsLoaded",
            "file_path": str(tmp_path / name),
            "memory_type": "Project",
            "load_reason": "session_start",
        }
        environment = {
            "PATH": os.environ["PATH"],
            "CLAUDE_PLUGIN_ROOT": str(plugin),
            "CLAUDE_PROJECT_DIR": str(tmp_path),
            "HOME": str(home),
            "DRAMATIS_AGENT": "pilot",
            "DRAMATIS_CHANNEL": "deck",
            **settings,
        }
        return subprocess.run(
            ["/bin/sh", "-c", command],
            input=json.dumps(event),
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )

    return run


def test_a_file_edited_by_hand_is_never_released_and_restored_it_is_the_same(stage, run_hook, tmp_path):
    text, file = stage.fetch().text, tmp_path / "CLAUDE.md"
    for content, status in (
        (text, BotStatus.SAME),
        (text.replace("Be kind.", "Be rude."), BotStatus.NEVER_RELEASED),
        (text, BotStatus.SAME),
    ):
        file.write_bytes(content.encode())
        assert run_hook().stderr == ""
        [bot] = list_bots(stage.workspace)
        assert bot.status == status
        assert (bot.details.path, bot.details.reason) == ("CLAUDE.md", "session_start")
        assert bot.details.session == "abc123"
        if status == BotStatus.NEVER_RELEASED:
            assert bot.details.changes is not None
            assert bot.details.changes.first_line == text.split("\n").index("Be kind.") + 1


def test_only_the_file_with_the_prompt_is_reported_and_the_text_only_if_wanted(stage, run_hook, tmp_path):
    for name in ("CLAUDE.md", "OTHER.md"):
        (tmp_path / name).write_text("Something else.")
    assert run_hook("OTHER.md").stderr == ""
    rows = DigestReport.objects.in_workspace(stage.workspace)
    assert not rows.exists()
    assert run_hook("OTHER.md", DRAMATIS_FILE="OTHER.md", DRAMATIS_SEND_TEXT="0").stderr == ""
    details = parse_report_details(rows.get().details)
    assert (details.path, details.changes) == ("OTHER.md", None)


def test_failures_are_described_and_do_not_disturb_the_session(stage, run_hook, tmp_path):
    assert "cannot be read" in run_hook().stderr
    (tmp_path / "CLAUDE.md").write_text("Something else.")
    assert "set DRAMATIS_CHANNEL" in run_hook(DRAMATIS_CHANNEL="").stderr
    assert "returned 401" in run_hook(key="wrong").stderr
    assert "prompt not found" in run_hook(DRAMATIS_AGENT="nobody").stderr
    assert "cannot be reached" in run_hook(url="http://127.0.0.1:1").stderr
    assert not DigestReport.objects.in_workspace(stage.workspace).exists()


# --- the address that gets the key ---------------------------------------------------------------------


def test_a_project_cannot_change_the_address_that_gets_the_key(stage, run_hook, tmp_path):
    (tmp_path / "CLAUDE.md").write_text("Something else.")
    with redirecting(204) as (url, keys):
        for settings in ({"DRAMATIS_URL": url}, {"DRAMATIS_URL": url, "DRAMATIS_KEY": "drm_other"}):
            assert f"DRAMATIS_URL is {url}, but the key in" in run_hook(**settings).stderr
        # A project that brings its own file, by another home directory.
        write_connection(tmp_path, url, "drm_other")
        assert "is in the project" in run_hook(HOME=str(tmp_path)).stderr
        (tmp_path / "empty").mkdir()
        assert "is in the project" in run_hook(HOME=str(tmp_path / "empty")).stderr
        assert keys == []
    assert not DigestReport.objects.in_workspace(stage.workspace).exists()


def test_the_file_with_the_key_is_required_and_readable_only_for_the_user(
    run_hook, tmp_path, tmp_path_factory
):
    (tmp_path / "CLAUDE.md").write_text("Something else.")
    home = tmp_path_factory.mktemp("other-home")
    variables = {"HOME": str(home), "DRAMATIS_URL": "http://127.0.0.1:1", "DRAMATIS_KEY": "drm_x"}
    assert "not read from environment variables" in run_hook(**variables).stderr
    path = write_connection(home, "http://127.0.0.1:1", "drm_x", mode=0o644)
    assert "chmod 600" in run_hook(**variables).stderr
    for text in ("[]", "{}", "no JSON", '{"url": "https://x"}'):
        path.write_text(text)
        assert "needs the values url and key" in run_hook(**variables).stderr


@pytest.mark.parametrize(
    "url", ["http://dramatis.example.com", "http://127.0.0.1.example.com", "http://10.0.0.1", "ftp://x", "x"]
)
def test_an_address_without_encryption_is_refused(run_hook, tmp_path, url):
    (tmp_path / "CLAUDE.md").write_text("Something else.")
    assert "must begin with https://" in run_hook(url=url).stderr


def test_files_outside_of_the_project_are_never_reported(stage, run_hook, tmp_path):
    outside = tmp_path.parent / "private.md"
    outside.write_text("Private.")
    for name in (str(outside), "../private.md"):
        assert "must be a file of the project" in run_hook(name, DRAMATIS_FILE=name).stderr
    assert not DigestReport.objects.in_workspace(stage.workspace).exists()


@pytest.mark.planted
@pytest.mark.parametrize(
    ("check", "fault"),
    [
        (
            'if other not in ("", connection.url):',
            "connection = Connection(other or connection.url, connection.key)\n    if False:",
        ),
        ("    check_url(connection.url)\n", ""),
    ],
)
def test_a_hook_that_trusts_the_address_of_a_project_is_detected(run_hook, tmp_path, check, fault):
    (tmp_path / "CLAUDE.md").write_text("Something else.")
    plugin = tmp_path / "plugin"
    shutil.copytree(PLUGIN, plugin)
    script = plugin / "hooks" / "report_loaded.py"
    assert check in script.read_text()
    script.write_text(script.read_text().replace(check, fault))
    with redirecting(302) as (url, _keys):
        if fault:
            assert "returned 302" in run_hook(plugin=plugin, DRAMATIS_URL=url).stderr
        else:
            assert "cannot be reached" in run_hook(plugin=plugin, url="http://127.0.0.1.invalid").stderr


# --- redirects -----------------------------------------------------------------------------------------


@contextmanager
def redirecting(status: int) -> Iterator[tuple[str, list[str]]]:
    """Start a server that redirects each report to another host name, and list the keys that arrive there."""
    keys: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            if self.path.startswith("/stolen"):
                self.do_GET()
                return
            self.send_response(status)
            self.send_header("Location", f"http://localhost:{http_server.server_port}/stolen")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_GET(self) -> None:
            keys.append(self.headers.get("Authorization", ""))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            """Write no log."""

    http_server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http_server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{http_server.server_port}", keys
    finally:
        http_server.shutdown()
        http_server.server_close()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_the_key_is_not_sent_to_the_address_of_a_redirect(run_hook, tmp_path, status):
    (tmp_path / "CLAUDE.md").write_text("Something else.")
    with redirecting(status) as (url, keys):
        assert f"returned {status}" in run_hook(url=url).stderr
        assert keys == []


@pytest.mark.planted
def test_a_hook_that_follows_redirects_is_detected(run_hook, tmp_path):
    (tmp_path / "CLAUDE.md").write_text("Something else.")
    plugin = tmp_path / "plugin"
    shutil.copytree(PLUGIN, plugin)
    script = plugin / "hooks" / "report_loaded.py"
    script.write_text(script.read_text().replace("build_opener(NoRedirects)", "build_opener()"))
    with redirecting(302) as (url, keys):
        run_hook(plugin=plugin, url=url)
        assert [key.startswith("Bearer drm_") for key in keys] == [True]
