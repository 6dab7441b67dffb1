"""One database's part of the versions bench; the parent process has set up the servers."""

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

from benches.history import lengthen, segment_lists, sizes  # noqa: E402
from personas.actors import Actor  # noqa: E402
from personas.agents.services import create_named_record  # noqa: E402
from personas.memories.services import create_memory  # noqa: E402
from personas.models import Agent, Channel, Soul, User, Workspace  # noqa: E402
from personas.records.services import create_record, edit_record  # noqa: E402
from personas.workspaces.services import create_workspace  # noqa: E402
from project.celery import app as application  # noqa: E402
from prompts.builds.services import rebuild_agents  # noqa: E402
from prompts.integrity.verify import verify_workspace  # noqa: E402
from prompts.models import AgentPrompt, BuildCause, PromptLabel, PromptVersion  # noqa: E402
from prompts.replay.services import get_label_version_at  # noqa: E402
from prompts.versions.selectors import get_prompt_labels, list_versions  # noqa: E402

BY = Actor("bench")
AGENTS, CHANNELS, MEMORIES, PUBLISHES, ROUNDS = 250, 4, 30, 60, 30
FAN_OUT_GOAL, HISTORY_GOAL, VERIFY_GOAL, STORAGE_GOAL = 10.0, 2.0, 10_000, 2_048


def main(rows: int, versions: int) -> int:
    call_command("migrate", verbosity=0, interactive=False)
    call_command("createcachetable", verbosity=0)
    workspace, soul, agents = stage()
    met = [
        publishing(workspace, agents[0]),
        fan_out(workspace, soul),
        *history(workspace, agents[0], rows, versions),
    ]
    return 0 if all(met) else 1


def stage() -> tuple[Workspace, Soul, list[Agent]]:
    """Two hundred and fifty agents that share a soul, on four channels each."""
    owner = User.objects.create_user("bench@example.com", None, name="Bench")
    workspace = create_workspace("Bench", "bench", owner=owner)
    soul = create_named_record(Soul, workspace, {"label": "Shared", "text": "Be brave. " * 120}, by=BY)
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


def publishing(workspace: Workspace, agent: Agent) -> bool:
    """One agent edited again and again: what one writer can publish, and what a version costs to keep."""
    rebuild_agents(workspace, [agent.pk])
    rows = PromptVersion.objects.in_workspace(workspace)
    before, last = sizes(), rows.order_by("pk").values_list("pk", flat=True)[rows.count() - 1]
    began = time.perf_counter()
    for number in range(PUBLISHES):
        create_memory(workspace, {"text": f"Note {number}: the crane is busy.", "agent": agent}, by=BY)
    took = time.perf_counter() - began
    made, grown = rows.filter(pk__gt=last).count(), sizes() - before
    own, kept = segment_lists(last)
    print(f"\n{connection.vendor}: {made / took:.0f} publishes a second by one writer")
    print(
        f"a version takes {grown / made:,.0f} bytes; {(grown - own) / made:,.0f} without the list's own bytes"
    )
    return said(
        "one more memory keeps", (grown - kept) / made, STORAGE_GOAL, " bytes beyond the segment list"
    )


def fan_out(workspace: Workspace, soul: Soul) -> bool:
    """An edit of the shared soul, carried by two worker processes to a thousand prompts."""
    command = [sys.executable, "-m", "celery", "--quiet", "-A", "project", "worker", "--concurrency", "2"]
    command += ["--without-gossip", "--without-mingle", "--loglevel", "ERROR"]
    worker = subprocess.Popen(command, start_new_session=True)  # noqa: S603  # ours
    try:
        wait_for_workers()
        wait_until_built(workspace)
        soul.refresh_from_db()
        began = time.perf_counter()
        edit_record(soul, {"text": "Be wise. " * 120}, expected=soul.revision, by=BY)
        wait_until_built(workspace)
        took = time.perf_counter() - began
    finally:
        os.killpg(worker.pid, signal.SIGTERM)
        worker.wait(30)
    told = PromptLabel.objects.in_workspace(workspace).values_list("version__causes", flat=True)
    reached = sum(causes[0]["kind"] == "soul" for causes in told)
    prompts = AgentPrompt.objects.in_workspace(workspace).count()
    print(f"one soul edit: live on {reached:,} of {prompts:,} prompts")
    return said("it took", took, FAN_OUT_GOAL, " s") and reached == prompts


def wait_for_workers() -> None:
    """An edit usually finds them running: what they need to start is not what is asked here."""
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


def history(workspace: Workspace, agent: Agent, rows: int, versions: int) -> list[bool]:
    """The same questions before and after a long history was laid down."""
    prompt = AgentPrompt.objects.in_workspace(workspace).filter(agent=agent).first()
    if prompt is None:
        raise SystemExit("The agent has no prompt.")
    moment = timezone.now()
    questions: dict[str, Callable[[], Any]] = {
        "time machine": lambda: get_label_version_at(prompt, "production", moment),
        "timeline page": lambda: list(list_versions(prompt)[:50]),
        "label": lambda: list(get_prompt_labels(prompt)),
    }
    short = {name: timed(ask) for name, ask in questions.items()}
    lengthen(workspace, prompt, rows, versions)
    print(f"history: {rows:,} ledger rows, {versions:,} versions")
    met = [
        said(name, timed(ask) / short[name], HISTORY_GOAL, "× of a short one")
        for name, ask in questions.items()
    ]
    began = time.perf_counter()
    verified = verify_workspace(workspace)
    speed = verified.checked / (time.perf_counter() - began)
    good = speed >= VERIFY_GOAL and verified.is_sound
    print(f"verifying {speed:,.0f} rows a second of {VERIFY_GOAL:,} {'met' if good else 'MISSED'}")
    if verified.first:
        print(f"the record is not sound: {verified.first}")
    return [*met, good]


def timed(ask: Callable[[], Any]) -> float:
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        ask()
        times.append(time.perf_counter() - began)
    return median(times)


def said(what: str, found: float, goal: float, unit: str) -> bool:
    print(f"{what} {found:,.2f}{unit} of {goal:g} {'met' if found <= goal else 'MISSED'}")
    return found <= goal


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
