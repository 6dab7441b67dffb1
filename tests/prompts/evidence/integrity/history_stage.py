"""A workspace with history: versions, label moves, sealed and expired blocks, an erasure, checkpoints."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.db import transaction
from django.test import override_settings
from django.utils import timezone

from personas.actors import Actor
from personas.api_keys.services import create_key
from personas.models import Agent, Memory, Soul, User, Workspace
from personas.records.services import edit_record
from prompts.assembly.slots import Slots
from prompts.evidence.erasure.services import erase_record
from prompts.evidence.integrity.checkpoint_signer import sign_checkpoint
from prompts.evidence.ledger.blocks import seal_ledger
from prompts.evidence.ledger.retention import expire_blocks, set_ledger_retention, subtract_months
from prompts.models import AgentPrompt
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.labels.services import move_label, remove_label, roll_back
from prompts.serving.cache import ServingCache
from prompts.serving.services import ServedPrompt
from tests.factories import (
    BY,
    join,
    make_agent,
    make_channel,
    make_memory,
    make_skill,
    make_soul,
    make_tool,
    make_user,
    make_workspace,
)
from tests.prompts.serving.serving_stage import fetch

_keys = count(1)
SECRET = "Mrs Penhaligon keeps her spare key under the third flowerpot."


@dataclass
class History:
    """A workspace with its served prompts and the times of its events."""

    workspace: Workspace
    by: Actor
    users: dict[str, User] = field(default_factory=dict)
    served: list[ServedPrompt] = field(default_factory=list)
    times: dict[str, datetime] = field(default_factory=dict)

    @property
    def agents(self) -> list[Agent]:
        return list(Agent.objects.in_workspace(self.workspace).order_by("pk"))

    def prompt(self, agent: str = "pilot", channel: str = "deck") -> AgentPrompt:
        rows = AgentPrompt.objects.in_workspace(self.workspace).select_related("agent", "channel", "latest")
        return rows.get(agent__slug=agent, channel__slug=channel)

    @contextmanager
    def at(self, name: str, time: datetime) -> Iterator[None]:
        """Run the body at that time; seal the ledger and sign a checkpoint five minutes later."""
        with time_machine.travel(time, tick=False):
            self.times[name] = timezone.now()
            yield
        with time_machine.travel(time + timedelta(minutes=5), tick=False):
            seal_ledger(self.workspace.pk)
            sign_checkpoint(self.workspace.pk)

    def build(self) -> None:
        """Rebuild explicitly: on-commit receivers do not run inside a test transaction."""
        rebuild_agents(self.workspace, [agent.pk for agent in self.agents])

    def reword(self, text: str) -> None:
        soul = Soul.objects.in_workspace(self.workspace).get()
        edit_record(soul, {"text": text}, expected=soul.revision, by=self.by, message="Other words — häufig")
        self.build()

    def serve(self, count: int, **options: Any) -> list[ServedPrompt]:
        _, secret = create_key(self.workspace, f"Bot {next(_keys)}", {}, by=BY)
        cache = ServingCache()
        served = [fetch(secret, cache=cache, **options) for _ in range(count)]
        self.served += served
        return served


def make_history(workspace: Workspace, by: Actor) -> History:
    """Create eight months of history: two agents on two channels, and three blocks, one of them expired."""
    history, now = History(set_ledger_retention(workspace, 6, by=by), by), timezone.now()
    with history.at("beginning", subtract_months(now, 8)):
        create_agents(history)
        history.serve(4)
    with history.at("secret", now - timedelta(days=3)):
        make_memory(workspace, SECRET)
        history.build()
        history.serve(3)
    with history.at("moves", now - timedelta(days=2)):
        move_labels(history)
        history.serve(4, channel="mast")
    with history.at("erasure", now - timedelta(days=1)):
        memory = Memory.objects.in_workspace(workspace).get(text=SECRET)
        erase_record(memory, reason="She asked for it.", by=by)
        expire_blocks(workspace.pk)
    history.reword("Be kind.")
    # With a value that is stored apart from the ledger rows.
    history.serve(2, slots=Slots(append="Answer in one sentence. " * 60))
    return history


def create_agents(history: History) -> None:
    workspace = history.workspace
    deck, mast = make_channel(workspace, "deck"), make_channel(workspace, "mast")
    soul, tool = (
        make_soul(workspace, text="Be brave."),
        make_tool(workspace, "sound_horn", description="Loud."),
    )
    make_skill(workspace, "knots", body="Tie a bowline.", for_all_agents=True)
    make_agent(workspace, "pilot", soul=soul, tools=[tool], channels=[deck, mast])
    make_agent(workspace, "cook", soul=soul, channels=[deck])
    history.build()


def move_labels(history: History) -> None:
    """Move a custom label twice, remove it, and roll back production."""
    prompt = history.prompt()
    first, second = prompt.versions.order_by("number")[:2]
    move_label(prompt, "canary", second, expected=None, by=history.by)
    move_label(prompt, "canary", first, expected=second.pk, by=history.by, note="Not yet")
    remove_label(prompt, "canary", by=history.by)
    history.reword("Be careful.")
    roll_back([history.prompt()], by=history.by, note="Too careful")


# --- shared by all tests of a module -------------------------------------------------------------------


@contextmanager
def rolled_back() -> Iterator[None]:
    """Roll back at the end; marked as a test case transaction, so that prompts can be served inside."""
    block = transaction.atomic()
    block._from_testcase = True  # type: ignore[attr-defined]  # as Django marks its own
    with block:
        yield
        transaction.set_rollback(True)


@pytest.fixture(scope="module")
def past(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[History, Path]]:
    """Alice's workspace with eight months of history and Bob as a member."""
    folder = tmp_path_factory.mktemp("checkpoints")
    with django_db_blocker.unblock(), rolled_back(), override_settings(DRAMATIS_CHECKPOINT_DIR=folder):
        alice, bob = make_user("Alice"), make_user("Bob")
        workspace = make_workspace("Harbour", owner=alice)
        join(workspace, bob)
        history = make_history(workspace, Actor.person(alice))
        history.users |= {"alice": alice, "bob": bob}
        yield history, folder


@pytest.fixture
def history(past: tuple[History, Path], tmp_path: Path, settings: Any) -> Iterator[History]:
    """The shared history, with a separate copy of the checkpoint files for each test."""
    shared_history, folder = past
    settings.DRAMATIS_CHECKPOINT_DIR = tmp_path / "checkpoints"
    shutil.copytree(folder, settings.DRAMATIS_CHECKPOINT_DIR)
    with rolled_back():
        yield replace(shared_history, served=list(shared_history.served))
