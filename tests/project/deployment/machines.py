"""Two web servers and two workers that share only a database and a broker."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import httpx
import pytest

from personas.models import Agent, Channel, Soul, Workspace
from project.redis_client import connect_redis
from prompts.models import BuildCause, PromptVersion
from prompts.publishing.builds.services import rebuild_agents
from tests.clients.live import LiveServer
from tests.factories import make_agent, make_channel, make_soul
from tests.skills.job_stage import JobStage, job_stage
from tests.workers import start_worker, wait_for


@dataclass
class Machines:
    """The processes, and requests to them."""

    stage: JobStage
    webs: list[LiveServer]

    def __post_init__(self) -> None:
        self.turns = cycle(self.webs)

    def ask(
        self, method: str, path: str, key: str, web: LiveServer | None = None, **options
    ) -> httpx.Response:
        """Send a request to the web servers in turn, or to the given one."""
        headers = {"Authorization": f"Bearer {key}", **options.pop("headers", {})}
        url = f"{(web or next(self.turns)).url}{path}"
        return httpx.request(method, url, headers=headers, timeout=20, **options)

    def is_at_rest(self, workspace: Workspace) -> bool:
        """Return whether no build and no message is pending."""
        with connect_redis(self.stage.broker.url) as client:
            waiting = int(client.llen("celery")) + int(client.hlen("unacked"))
        return not waiting and not BuildCause.objects.in_workspace(workspace).exists()

    def wait_for_rest(self, workspace: Workspace) -> None:
        assert wait_for(lambda: self.is_at_rest(workspace), 60), self.stage.log()


@contextmanager
def machines(folder: Path) -> Iterator[Machines]:
    with job_stage(folder, folder) as stage, pytest.MonkeyPatch.context() as environment:
        environment.setenv("REDIS_URL", stage.broker.url)
        # All builds run in the workers, as for a large change.
        environment.setenv("DRAMATIS_BUILD_AT_ONCE", "0")
        webs = [LiveServer(folder / f"web-{number}.log") for number in (1, 2)]
        try:
            for web in webs:
                web.start()
            for number in (1, 2):
                stage.keep(start_worker(folder / f"worker-{number}.log", environment=stage.environment))
            yield Machines(stage, webs)
        finally:
            for web in webs:
                web.kill()


def crew_of(workspace: Workspace, count: int) -> tuple[Soul, Channel]:
    """Create agents that share one soul, each with its first version."""
    soul, channel = make_soul(workspace), make_channel(workspace, "deck")
    for number in range(count):
        make_agent(workspace, f"mate-{number}", soul=soul, channels=[channel])
    rebuild_agents(workspace, Agent.objects.in_workspace(workspace).values_list("pk", flat=True))
    return soul, channel


def surplus(workspace: Workspace, expected: int) -> dict[str, list[int]]:
    """Return prompts whose versions are not exactly 1 to `expected`."""
    numbers_by_agent: dict[str, list[int]] = {}
    rows = PromptVersion.objects.in_workspace(workspace).order_by("number")
    for slug, number in rows.values_list("prompt__agent__slug", "number"):
        numbers_by_agent.setdefault(slug, []).append(number)
    return {
        slug: numbers for slug, numbers in numbers_by_agent.items() if numbers != list(range(1, expected + 1))
    }
