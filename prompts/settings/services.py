"""Read and write the prompt settings of a level."""

from typing import Any

from django.db import transaction

from personas.actors import Actor
from personas.models import Agent, Channel, Workspace
from personas.records.services import create_record, edit_record
from prompts.models import PromptSettings


def find_level_settings(
    workspace: Workspace, agent: Agent | None = None, channel: Channel | None = None
) -> PromptSettings | None:
    rows = PromptSettings.objects.in_workspace(workspace)
    return rows.filter(agent=agent, channel=channel).select_related("agent", "channel").first()


@transaction.atomic
def put_settings(
    workspace: Workspace,
    values: dict[str, Any],
    *,
    expected: int,
    by: Actor,
    agent: Agent | None = None,
    channel: Channel | None = None,
) -> PromptSettings:
    """Create or replace the settings of one level.

    The level is a prompt if agent and channel are given, an agent, a channel, or the workspace if neither is.
    Empty values are inherited from the next more general level.
    """
    Workspace.objects.select_for_update().get(pk=workspace.pk)
    row = find_level_settings(workspace, agent, channel)
    if row is None:
        return create_record(PromptSettings, workspace, values | {"agent": agent, "channel": channel}, by=by)
    return edit_record(row, values, expected=expected, by=by)
