"""A workspace with a past: versions, moves, fetches in blocks, some let go, an erasure, signed checkpoints."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import time_machine
from django.db import connection, transaction
from django.utils import timezone

from personas.actors import Actor
from personas.models import Agent, Memory, Soul, Workspace
from personas.services.keys import create_key
from personas.services.records import edit_record
from prompts.models import AgentPrompt
from prompts.services.building import rebuild_agents
from prompts.services.checkpoints import sign_checkpoint
from prompts.services.erasing import erase_record
from prompts.services.labelling import move_label, roll_back, take_off_label
from prompts.services.retention import keep_ledger_for, months_before, roll_off
from prompts.services.sealing import seal_workspace
from prompts.serving import Recall, Served
from tests.factories import BY, make_agent, make_channel, make_memory, make_soul, make_tool
from tests.prompts.serving_stage import fetch

SECRET = "Mrs Penhaligon keeps her spare key under the third flowerpot."
# The tables of the record that only grow.
GROWING = (
    "prompts_promptversion",
    "prompts_versionpart",
    "prompts_labelmove",
    "prompts_ledgerentry",
    "prompts_ledgerblock",
    "prompts_ledgerrolloff",
    "prompts_checkpoint",
    "prompts_signingkey",
)


@dataclass
class History:
    """What happened, and when."""

    workspace: Workspace
    by: Actor
    served: list[Served] = field(default_factory=list)
    moments: dict[str, datetime] = field(default_factory=dict)

    @property
    def agents(self) -> list[Agent]:
        return list(Agent.objects.in_workspace(self.workspace).order_by("pk"))

    def prompt(self, agent: str = "pilot", channel: str = "deck") -> AgentPrompt:
        rows = AgentPrompt.objects.in_workspace(self.workspace).select_related("agent", "channel", "latest")
        return rows.get(agent__slug=agent, channel__slug=channel)

    @contextmanager
    def at(self, name: str, moment: datetime) -> Iterator[None]:
        """Something happens then; what was handed out is closed in a block a while later, and signed."""
        with time_machine.travel(moment, tick=False):
            self.moments[name] = timezone.now()
            yield
        with time_machine.travel(moment + timedelta(minutes=5), tick=False):
            seal_workspace(self.workspace.pk)
            sign_checkpoint(self.workspace.pk)

    def build(self) -> None:
        """A test in a transaction of its own never commits, and so does not hear the bell."""
        rebuild_agents(self.workspace, [agent.pk for agent in self.agents])

    def reword(self, text: str) -> None:
        soul = Soul.objects.in_workspace(self.workspace).get()
        edit_record(soul, {"text": text}, expected=soul.revision, by=self.by, message="Other words — häufig")
        self.build()

    def hand_out(self, count: int, **asked: Any) -> list[Served]:
        key, secret = create_key(self.workspace, f"Bot {timezone.now():%Y%m%d%H%M%S}", {}, by=BY)
        made = [fetch(secret, recall=Recall(), **asked) for _ in range(count)]
        self.served += made
        return made


def make_history(workspace: Workspace, by: Actor) -> History:
    """Eight months of it: two agents on two channels, thirteen versions, three blocks, one of them let go."""
    history, now = History(workspace, by), timezone.now()
    keep_ledger_for(workspace, 6, by=by)
    with history.at("beginning", months_before(now, 8)):
        settle_in(history)
        history.hand_out(4)
    with history.at("secret", now - timedelta(days=3)):
        make_memory(workspace, SECRET)
        history.build()
        history.hand_out(3)
    with history.at("moves", now - timedelta(days=2)):
        move_about(history)
        history.hand_out(4, channel="mast")
    with history.at("erasure", now - timedelta(days=1)):
        memory = Memory.objects.in_workspace(workspace).get(text=SECRET)
        erase_record(memory, reason="She asked for it.", by=by)
        roll_off(workspace.pk)
    history.reword("Be kind.")
    history.hand_out(2)
    return history


def settle_in(history: History) -> None:
    workspace = history.workspace
    deck, mast = make_channel(workspace, "deck"), make_channel(workspace, "mast")
    soul, tool = (
        make_soul(workspace, text="Be brave."),
        make_tool(workspace, "sound_horn", description="Loud."),
    )
    make_agent(workspace, "pilot", soul=soul, tools=[tool], channels=[deck, mast])
    make_agent(workspace, "cook", soul=soul, channels=[deck])
    history.build()


def move_about(history: History) -> None:
    """A label of its own, moved and taken off; production rolled back."""
    prompt = history.prompt()
    first, second = prompt.versions.order_by("number")[:2]
    move_label(prompt, "canary", second, expected=None, by=history.by)
    move_label(prompt, "canary", first, expected=second.pk, by=history.by, note="Not yet")
    take_off_label(prompt, "canary", by=history.by)
    history.reword("Be careful.")
    roll_back([history.prompt()], by=history.by, note="Too careful")


# --- laying the guards aside ---------------------------------------------------------------------------


@contextmanager
def unguarded() -> Iterator[None]:
    """Somebody with the database in his hands; everything is put back."""
    point = transaction.savepoint()
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL session_replication_role = replica")
        else:
            cursor.execute("SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'prompts%'")
            for (name,) in cursor.fetchall():
                cursor.execute(f"DROP TRIGGER {name}")
    try:
        yield
    finally:
        transaction.savepoint_rollback(point)


def by_hand(statement: str, *values: Any) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.rowcount
