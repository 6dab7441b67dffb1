"""Shared fixtures of the serving tests: an agent with a prompt, a key to fetch it, and a cache."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from django.db import DatabaseError, connection
from django.utils import timezone

from personas.api_keys.services import create_key
from personas.models import Agent, ApiKey, Soul, Workspace
from personas.records.services import edit_record
from prompts.assembly.slots import Slots
from prompts.models import AgentPrompt, LedgerBlock, LedgerEntry, LedgerExpiry
from prompts.proof.ledger_blocks import verify_ledger
from prompts.proof_rows import build_block_row, build_ledger_row
from prompts.publishing.builds.services import rebuild_agents
from prompts.serving.cache import ServingCache
from prompts.serving.request import EMPTY_SLOTS, CallContext, KeyClient, PromptRequest
from prompts.serving.services import ServedPrompt, serve_prompt
from tests.factories import BY, make_agent, make_channel, make_soul

_requests = count(1)


@dataclass
class Stage:
    """One agent on one channel, a key, and the cache of one process."""

    workspace: Workspace
    agent: Agent
    key: ApiKey
    secret: str
    cache: ServingCache = field(default_factory=ServingCache)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Stage":
        """Copy for another test, with an empty cache like a new process."""
        return Stage(*deepcopy((self.workspace, self.agent, self.key, self.secret), memo))

    def fetch(self, **options: Any) -> ServedPrompt:
        return fetch(self.secret, cache=self.cache, **options)

    def change_layout(self, layout: str, **values: Any) -> None:
        agent = Agent.objects.in_workspace(self.workspace).get(pk=self.agent.pk)
        edit_record(agent, {"layout": layout} | values, expected=agent.revision, by=BY)
        rebuild_agents(self.workspace, [self.agent.pk])

    def edit(self, text: str) -> None:
        """Edit the soul, which builds the next version; production follows."""
        soul = Soul.objects.in_workspace(self.workspace).get(agents=self.agent)
        edit_record(soul, {"text": text}, expected=soul.revision, by=BY)
        rebuild_agents(self.workspace, [self.agent.pk])

    @property
    def prompt(self) -> AgentPrompt:
        return AgentPrompt.objects.in_workspace(self.workspace).get(agent=self.agent)

    @property
    def rows(self) -> list[LedgerEntry]:
        return list(LedgerEntry.objects.in_workspace(self.workspace).order_by("pk"))


def make_stage(workspace: Workspace, text: str = "Be brave.", **values: Any) -> Stage:
    channel = make_channel(workspace, "deck")
    agent = make_agent(workspace, "pilot", soul=make_soul(workspace, text=text), channels=[channel], **values)
    # A test in its own transaction never commits, so the signal receiver does not build.
    rebuild_agents(workspace, [agent.pk])
    key, secret = create_key(workspace, "Reception", {}, by=BY)
    return Stage(workspace, agent, key, secret)


def fetch(
    secret: str,
    agent: str = "pilot",
    channel: str = "deck",
    label: str = "production",
    *,
    slots: Slots | None = None,
    known: str = "",
    cache: ServingCache | None = None,
    **options: Any,
) -> ServedPrompt:
    """Fetch a prompt as a bot does."""
    call = CallContext(slots or EMPTY_SLOTS, f"req-{next(_requests)}", (known,) if known else ())
    return serve_prompt(
        KeyClient(secret),
        PromptRequest(agent, channel, label, **options),
        call,
        cache=ServingCache() if cache is None else cache,
    )


# --- the ledger as it is verified ----------------------------------------------------------------------


def ledger_verdict(workspace: Workspace) -> Any:
    rows = LedgerEntry.objects.in_workspace(workspace).select_related("prompt", "version").order_by("pk")
    blocks = LedgerBlock.objects.in_workspace(workspace).order_by("sequence")
    gone = LedgerExpiry.objects.in_workspace(workspace).order_by("-block__sequence").first()
    sealed = [(build_ledger_row(row), row.seal) for row in rows]
    return verify_ledger(map(build_block_row, blocks), sealed, gone.block.sequence if gone else 0)


def insert_rows(stage: Stage, timestamps: list[datetime]) -> None:
    """Insert sealed copies of a real row with other timestamps."""
    if not stage.rows:
        stage.fetch()
    for at in timestamps:
        insert_row(stage, at)


def insert_row(stage: Stage, at: datetime, number: int | None = None) -> None:
    """Insert one such row, with the next id or with the given one."""
    rows = LedgerEntry.objects.in_workspace(stage.workspace).select_related("prompt", "version")
    row = rows.earliest("pk")
    row.pk, row._state.adding, row.at = number, True, at
    row.seal = build_ledger_row(row).seal()
    row.save(force_insert=True)


def long_ago(**ago: float) -> datetime:
    return timezone.now() - timedelta(**ago)


# --- breaking the database -----------------------------------------------------------------------------


@contextmanager
def statements_fail_at(prefix: str) -> Iterator[list[str]]:
    """Make every statement that starts with the prefix raise a DatabaseError; yield those statements."""
    statements: list[str] = []

    def refuse(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.lstrip().startswith(prefix):
            statements.append(sql)
            raise DatabaseError("the disk is full")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(refuse):
        yield statements
