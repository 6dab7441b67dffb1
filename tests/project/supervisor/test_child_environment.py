"""The processes of a development server log warnings only, so that the sign-in stays visible."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from project.jobs.schedule import JOB_QUEUES
from project.supervisor.children import build_child_environment, start_workers
from project.supervisor.supervisor import Supervisor


def test_requests_and_jobs_are_logged_on_demand(monkeypatch):
    monkeypatch.delenv("LOG_LEVEL", raising=False)
    assert build_child_environment("127.0.0.1", 8000)["LOG_LEVEL"] == "WARNING"
    monkeypatch.setenv("LOG_LEVEL", "INFO")
    assert build_child_environment("127.0.0.1", 8000)["LOG_LEVEL"] == "INFO"


class RecordingSupervisor:
    """Keeps the commands instead of starting them."""

    def __init__(self) -> None:
        self.commands: dict[str, list[str]] = {}

    def start(self, name: str, command: Sequence[str | Path], env: Mapping[str, str]) -> None:
        self.commands[name] = [str(word) for word in command]


def test_webhooks_have_a_worker_of_their_own():
    """A receiver that hangs must not hold up builds and refreshes."""
    supervisor = RecordingSupervisor()
    start_workers(cast("Supervisor", supervisor), {})
    workers = [command for command in supervisor.commands.values() if "--queues" in command]
    queues = [command[command.index("--queues") + 1].split(",") for command in workers]
    assert sorted(queues, key=len) == [["webhooks"], [name for name in JOB_QUEUES if name != "webhooks"]]
    # Workers with one name would hide each other from `manage.py doctor`.
    assert len({command[command.index("--hostname") + 1] for command in workers}) == 2
