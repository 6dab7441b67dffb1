"""Every command and program of the API guide runs against a live server."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pytest_django.live_server_helper import LiveServer

from personas.actors import Actor
from personas.api_keys.services import create_key
from personas.models import Channel, User, Workspace
from prompts.publishing.builds.services import rebuild_agents
from tests.curl import curl_beside
from tests.factories import make_agent, make_skill

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
GUIDE = (ROOT / "docs" / "api.md").read_text()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = [code for kind, code in BLOCK.findall(GUIDE) if kind == "sh" and "export" not in code]
PROGRAMS = [code for kind, code in BLOCK.findall(GUIDE) if kind == "python"]


@pytest.fixture
def environment(live_server: LiveServer, workspace: Workspace, alice: User, tmp_path: Path) -> dict[str, str]:
    agent = make_agent(
        workspace, slug="mira", channels=[Channel.objects.in_workspace(workspace).get(slug="web")]
    )
    make_skill(workspace, "refunds", agents=[agent])
    rebuild_agents(workspace, [agent.pk])
    _, secret = create_key(workspace, "Guide", {}, by=Actor.person(alice))
    return {
        **os.environ,
        "DRAMATIS_URL": live_server.url,
        "DRAMATIS_KEY": secret,
        "PATH": f"{curl_beside(tmp_path)}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "clients" / "python" / "src"),
    }


def test_the_guide_has_commands_for_each_thing() -> None:
    assert len(COMMANDS) >= 5
    assert len(PROGRAMS) == 1


def test_every_command_of_the_guide_works(environment: dict[str, str]) -> None:
    for code in COMMANDS:
        done = subprocess.run(
            ["/bin/sh", "-e", "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{code}\n{done.stderr}"
        if "prompt.md" not in code and "SKILL.md" not in code:
            assert json.loads(done.stdout)


def test_every_program_of_the_guide_works(environment: dict[str, str], tmp_path: Path) -> None:
    for code in PROGRAMS:
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()
