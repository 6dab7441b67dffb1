"""The versions bench on one database; the parent process has started the servers."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
django.setup()

from django.core.management import call_command  # noqa: E402  # Django first
from django.db import connection  # noqa: E402
from django.utils import timezone  # noqa: E402

from benches.history import extend_history, get_table_sizes, measure_segment_lists  # noqa: E402
from personas.actors import Actor  # noqa: E402
from personas.agents.services import create_named_record  # noqa: E402
from personas.memories.services import create_memory  # noqa: E402
from personas.models import Agent, Channel, Soul, User, Workspace  # noqa: E402
from personas.records.services import create_record, edit_record  # noqa: E402
from personas.workspaces.services import create_workspace  # noqa: E402
from project.celery import app as application  # noqa: E402
from prompts.evidence.integrity.verify import verify_workspace  # noqa: E402
from prompts.evidence.replay.services import get_label_version_at  # noqa: E402
from prompts.models import AgentPrompt, BuildCause, PromptLabel, PromptVersion  # noqa: E402
from prompts.publishing.builds.services import rebuild_agents  # noqa: E402
from prompts.publishing.versions.selectors import get_prompt_labels, list_versions  # noqa: E402

BY = Actor("bench")
AGENTS, CHANNELS, MEMORIES, PUBLISHES, ROUNDS = 250, 4, 30, 60, 30
FAN_OUT_GOAL, HISTORY_GOAL, VERIFY_GOAL, STORAGE_GOAL = 2.5, 2.0, 10_000, 2_048


def main(rows: int, versions: int) -> int:
    call_command("migrate", verbosity=0, interactive=False)
    call_command("createcachetable", verbosity=0)
    workspace, soul, agents = create_stage()
    goals_met = [
        measure_publishing(workspace, agents[0]),
        measure_fan_out(workspace, soul),
        *measure_history(workspace, agents[0], rows, versions),
    ]
    return 0 if all(goals_met) else 1


def create_stage() -> tuple[Workspace, Soul, list[Agent]]:
    """Create 250 agents that share a soul, on four channels each."""
    owner = User.objects.create_user("bench@example.com", None, name="Bench")
    workspace = create_workspace("Bench", "bench", owner=owner)
    soul = create_named_record(Soul, workspace, {"name": "Shared", "text": "Be brave. " * 120}, by=BY)
    channels = list(Channel.objects.in_workspace(workspace)[:CHANNELS])
    for number in range(MEMORIES):
        create_memory(workspace, {"text": f"Ship {number} lies at berth {number % 7} until Tuesday."}, by=BY)
    agents = [
        create_record(
            Agent,
            workspace,
            {"slug": f"a{number}", "name": f"Agent {number}", "soul": soul, "channels": channels},
            by=BY,
        )
        for number in range(AGENTS)
    ]
    return workspace, soul, agents


def measure_publishing(workspace: Workspace, agent: Agent) -> bool:
    """Edit one agent repeatedly: measure the publish rate of one writer and the storage per version."""
    rebuild_agents(workspace, [agent.pk])
    rows = PromptVersion.objects.in_workspace(workspace)
    before, last = get_table_sizes(), rows.order_by("pk").values_list("pk", flat=True)[rows.count() - 1]
    started_at = time.perf_counter()
    for number in range(PUBLISHES):
        create_memory(workspace, {"text": f"Note {number}: the crane is busy.", "agent": agent}, by=BY)
    seconds = time.perf_counter() - started_at
    version_count, growth = rows.filter(pk__gt=last).count(), get_table_sizes() - before
    value_bytes, table_bytes = measure_segment_lists(last)
    print(f"\n{connection.vendor}: {version_count / seconds:.0f} publishes a second by one writer")
    print(
        f"a version takes {growth / version_count:,.0f} bytes; "
        f"{(growth - value_bytes) / version_count:,.0f} without the list's own bytes"
    )
    return report_goal(
        "one more memory keeps",
        (growth - table_bytes) / version_count,
        STORAGE_GOAL,
        " bytes beyond the segment list",
    )


def measure_fan_out(workspace: Workspace, soul: Soul) -> bool:
    """Edit the shared soul and measure the time until two workers have rebuilt a thousand prompts."""
    command = [sys.executable, "-m", "celery", "--quiet", "-A", "project", "worker", "--concurrency", "2"]
    command += ["--without-gossip", "--without-mingle", "--loglevel", "ERROR"]
    worker = subprocess.Popen(command, start_new_session=True)  # noqa: S603  # ours
    try:
        wait_for_workers()
        wait_until_built(workspace)
        soul.refresh_from_db()
        started_at = time.perf_counter()
        edit_record(soul, {"text": "Be wise. " * 120}, expected=soul.revision, by=BY)
        wait_until_built(workspace)
        seconds = time.perf_counter() - started_at
    finally:
        os.killpg(worker.pid, signal.SIGTERM)
        worker.wait(30)
    all_causes = PromptLabel.objects.in_workspace(workspace).values_list("version__causes", flat=True)
    reached = sum(causes[0]["kind"] == "soul" for causes in all_causes)
    prompts = AgentPrompt.objects.in_workspace(workspace).count()
    print(f"one soul edit: live on {reached:,} of {prompts:,} prompts")
    return report_goal("it took", seconds, FAN_OUT_GOAL, " s") and reached == prompts


def wait_for_workers() -> None:
    """Wait until the workers run, because their start-up time is not measured."""
    deadline = time.monotonic() + 60
    while not application.control.ping(timeout=0.5):
        if time.monotonic() > deadline:
            raise SystemExit("The workers did not start.")


def wait_until_built(workspace: Workspace) -> None:
    deadline = time.monotonic() + 120
    while BuildCause.objects.in_workspace(workspace).exists():
        if time.monotonic() > deadline:
            raise SystemExit("The workers did not finish.")
        time.sleep(0.05)


def measure_history(workspace: Workspace, agent: Agent, rows: int, versions: int) -> list[bool]:
    """Time the same queries before and after a long history is created, and measure verification."""
    prompt = AgentPrompt.objects.in_workspace(workspace).filter(agent=agent).first()
    if prompt is None:
        raise SystemExit("The agent has no prompt.")
    now = timezone.now()
    queries: dict[str, Callable[[], Any]] = {
        "time machine": lambda: get_label_version_at(prompt, "production", now),
        "timeline page": lambda: list(list_versions(prompt)[:50]),
        "label": lambda: list(get_prompt_labels(prompt)),
    }
    times_before = {name: measure_median_seconds(query) for name, query in queries.items()}
    extend_history(workspace, prompt, rows, versions)
    print(f"history: {rows:,} ledger rows, {versions:,} versions")
    goals_met = [
        report_goal(
            name, measure_median_seconds(query) / times_before[name], HISTORY_GOAL, "× of a short one"
        )
        for name, query in queries.items()
    ]
    started_at = time.perf_counter()
    verified = verify_workspace(workspace)
    speed = verified.checked / (time.perf_counter() - started_at)
    is_met = speed >= VERIFY_GOAL and verified.is_sound
    print(f"verifying {speed:,.0f} rows a second of {VERIFY_GOAL:,} {'met' if is_met else 'MISSED'}")
    if verified.first:
        print(f"the record is not sound: {verified.first}")
    return [*goals_met, is_met]


def measure_median_seconds(query: Callable[[], Any]) -> float:
    times = []
    for _ in range(ROUNDS):
        started_at = time.perf_counter()
        query()
        times.append(time.perf_counter() - started_at)
    return median(times)


def report_goal(name: str, value: float, goal: float, unit: str) -> bool:
    print(f"{name} {value:,.2f}{unit} of {goal:g} {'met' if value <= goal else 'MISSED'}")
    return value <= goal


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
