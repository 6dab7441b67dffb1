"""Read and write the prompt settings of a level."""

from typing import Any

from django.db import transaction

from personas.actors import Actor
from personas.models import Agent, Channel, Workspace
from personas.records.services import create_record, edit_record
from personas.tenancy.lost_nodes import lock_workspace
from prompts.models import PromptSettings

# How many ids follow the level in the URL key of its settings.
LINK_COUNTS = {"workspace": 0, "agent": 1, "channel": 1, "prompt": 2}


def find_level_settings(
    workspace: Workspace, agent: Agent | None = None, channel: Channel | None = None
) -> PromptSettings | None:
    rows = PromptSettings.objects.in_workspace(workspace)
    return rows.filter(agent=agent, channel=channel).select_related("agent", "channel").first()


def get_or_build_level(workspace: Workspace, key: str) -> PromptSettings | None:
    """Return the settings of the level with this URL key, unsaved if the level has none yet.

    Keys are `workspace`, `agent-<id>`, `channel-<id>` and `prompt-<agent id>-<channel id>`. Return None for
    any other key, and if the workspace has no such agent or channel.
    """
    level, *ids = key.split("-")
    are_numbers = all(pk.isascii() and pk.isdecimal() and len(pk) < 19 for pk in ids)
    if len(ids) != LINK_COUNTS.get(level) or not are_numbers:
        return None
    agent, channel = None, None
    if level in ("agent", "prompt"):
        agent = Agent.objects.in_workspace(workspace).filter(pk=int(ids[0])).first()
    if level in ("channel", "prompt"):
        channel = Channel.objects.in_workspace(workspace).filter(pk=int(ids[-1])).first()
    if LINK_COUNTS[level] != sum(link is not None for link in (agent, channel)):
        return None
    found = find_level_settings(workspace, agent, channel)
    return found or PromptSettings(workspace=workspace, agent=agent, channel=channel)


@transaction.atomic
def put_settings(
    workspace: Workspace,
    values: dict[str, Any],
    *,
    expected: int,
    by: Actor,
    agent: Agent | None = None,
    channel: Channel | None = None,
    message: str = "",
) -> PromptSettings:
    """Create or replace the settings of one level.

    The level is a prompt if agent and channel are given, an agent, a channel, or the workspace if neither is.
    Empty values are inherited from the next more general level.
    """
    lock_workspace(workspace.pk)
    row = find_level_settings(workspace, agent, channel)
    if row is None:
        level = {"agent": agent, "channel": channel}
        return create_record(PromptSettings, workspace, values | level, by=by, message=message)
    return edit_record(row, values, expected=expected, by=by, message=message)
