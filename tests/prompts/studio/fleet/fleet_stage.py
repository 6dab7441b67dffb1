"""Fleets for tests: a few agents created by services, or hundreds of rows inserted in bulk."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Model
from django.utils import timezone

from personas.models import Agent, AgentChannel, ApiKey, Channel, Soul, Workspace
from personas.records.services import edit_record
from prompts.models import PRODUCTION, AgentPrompt, LedgerEntry, PromptLabel, PromptVersion
from prompts.publishing.builds.services import rebuild_agents
from tests.factories import BY, make_agent, make_channel, make_soul
from tests.shared_cast import (  # fixtures
    SharedCast,
)


def make_fleet(shared: SharedCast) -> None:
    """Create Pilot (automatic, on both channels) and Careful (reviewed, on deck only, never released)."""
    workspace = shared.workspace
    shared.channels = [make_channel(workspace, "deck"), make_channel(workspace, "bridge")]
    shared.soul = make_soul(workspace, text="Be brave.")
    values = {"soul": shared.soul, "channels": shared.channels}
    shared.pilot = make_agent(workspace, "pilot", **values)
    values |= {"channels": shared.channels[:1], "release_policy": "reviewed", "layout": "nova"}
    shared.careful = make_agent(workspace, "careful", **values)


def change_soul(soul: Soul, text: str, *agents: Agent) -> None:
    soul.refresh_from_db()
    edit_record(soul, {"text": text}, expected=soul.revision, by=BY)
    rebuild(*agents)


def rebuild(*agents: Agent) -> None:
    """Rebuild explicitly: a test in a transaction never commits, so the signal handler does not run."""
    rebuild_agents(agents[0].workspace_id, [agent.pk for agent in agents])


def get_prompt(agent: Agent, channel: str = "deck") -> AgentPrompt:
    rows = AgentPrompt.objects.in_workspace(agent.workspace_id).select_related("latest")
    return rows.get(agent=agent, channel__slug=channel)


def get_production_number(agent: Agent, channel: str = "deck") -> int | None:
    rows = PromptLabel.objects.in_workspace(agent.workspace_id).filter(
        prompt=get_prompt(agent, channel), name=PRODUCTION
    )
    return rows.values_list("version__number", flat=True).first()


def add_ledger_entry(
    prompt: AgentPrompt, key: ApiKey, *, at: datetime | None = None, **overrides: Any
) -> LedgerEntry:
    """Insert a ledger row with a dummy seal, which the fleet does not check."""
    values = {
        "workspace_id": prompt.workspace_id,
        "key": key,
        "reader_label": key.name,
        "prompt": prompt,
        "label": PRODUCTION,
        "version_id": prompt.latest_id,
        "slots": {},
        "served_digest": "0" * 64,
        "size": 100,
        "status": 200,
        "request_id": "",
        "at": at or timezone.now(),
        "seal": "0" * 64,
    }
    row = LedgerEntry(**values | overrides)
    LedgerEntry.unscoped.bulk_create([row])
    return row


def make_large_fleet(workspace: Workspace, agents: int, channels: int) -> Sequence[AgentPrompt]:
    """Insert agents on channels with two versions each, of which the first is in production."""
    channel_rows = Channel.unscoped.bulk_create(
        [
            Channel(workspace=workspace, slug=f"line-{n}", name=f"Line {n}", revision=1)
            for n in range(channels)
        ]
    )
    agent_rows = Agent.unscoped.bulk_create(
        [
            Agent(workspace=workspace, slug=f"mate-{n:03}", name=f"Mate {n:03}", revision=1)
            for n in range(agents)
        ]
    )
    pairs = [(agent, channel) for agent in agent_rows for channel in channel_rows]
    AgentChannel.unscoped.bulk_create(
        [
            AgentChannel(workspace=workspace, agent=agent, channel=channel, position=0)
            for agent, channel in pairs
        ]
    )
    prompts = AgentPrompt.unscoped.bulk_create(
        [
            AgentPrompt(workspace=workspace, agent=agent, channel=channel, last_number=2)
            for agent, channel in pairs
        ]
    )
    versions = [build_version(prompt, number) for prompt in prompts for number in (1, 2)]
    PromptVersion.unscoped.bulk_create(versions)
    for prompt, latest in zip(prompts, versions[1::2], strict=True):
        prompt.latest, prompt.built_at = latest, timezone.now()
    AgentPrompt.unscoped.bulk_update(prompts, ["latest", "built_at"])
    PromptLabel.unscoped.bulk_create(
        [
            PromptLabel(
                workspace=workspace, prompt=prompt, name=PRODUCTION, version=first, moved_at=timezone.now()
            )
            for prompt, first in zip(prompts, versions[::2], strict=True)
        ]
    )
    analyze_tables(Channel, Agent, AgentChannel, AgentPrompt, PromptVersion, PromptLabel)
    return prompts


def analyze_tables(*models: type[Model]) -> None:
    """Run ANALYZE: without it the planner has no statistics about uncommitted rows and plans badly."""
    with connection.cursor() as cursor:
        for model in models:
            cursor.execute(f"ANALYZE {connection.ops.quote_name(model._meta.db_table)}")


def build_version(prompt: AgentPrompt, number: int) -> PromptVersion:
    return PromptVersion(
        workspace_id=prompt.workspace_id,
        prompt=prompt,
        number=number,
        digest=f"{number:064}",
        text_digest=f"{number:064}",
        layout="dramatis",
        compiler="test",
        segments=[],
        report="",
        characters=4_000,
        tokens=1_000 + number,
        sizes={},
        lockfile={},
        causes=[],
        author_label="test",
        created_at=timezone.now(),
        hash=f"{number:064}",
    )
