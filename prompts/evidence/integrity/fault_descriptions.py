"""Describe verification faults for users: agent and channel ids are replaced by names."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from personas.models import Agent, Channel, Workspace

PROMPT_PATTERN = re.compile(r"agent (\d+) (?:on channel (\d+)|without a channel)")


@dataclass(frozen=True)
class FaultDescription:
    """A bad row and what is wrong with it; `text` is the original message with ids."""

    name: str
    reason: str
    text: str


def describe_faults(workspace: Workspace, faults: Sequence[dict[str, Any]]) -> list[FaultDescription]:
    """Describe the faults with two queries, independent of the number of faults."""
    matches = [PROMPT_PATTERN.findall(f"{fault['key']} {fault['reason']}") for fault in faults]
    agents = get_quoted_names(
        Agent, workspace, {int(agent) for pairs in matches for agent, _channel in pairs}
    )
    channels = get_quoted_names(
        Channel, workspace, {int(channel) for pairs in matches for _agent, channel in pairs if channel}
    )

    def replace_ids(match: re.Match[str]) -> str:
        agent, channel = match[1], match[2]
        agent_name = agents.get(int(agent)) or _("agent %(number)s") % {"number": agent}
        if not channel:
            return agent_name
        channel_name = channels.get(int(channel)) or _("channel %(number)s") % {"number": channel}
        return _("%(agent)s on %(channel)s") % {"agent": agent_name, "channel": channel_name}

    return [
        FaultDescription(
            PROMPT_PATTERN.sub(replace_ids, fault["key"]),
            PROMPT_PATTERN.sub(replace_ids, fault["reason"]),
            f"{fault['key']}: {fault['reason']}",
        )
        for fault in faults
    ]


def get_quoted_names(
    model: type[Agent] | type[Channel], workspace: Workspace, keys: set[int]
) -> dict[int, str]:
    ids = [key for key in keys if key < 2**63]
    rows = model.objects.in_workspace(workspace).filter(pk__in=ids)
    return {key: f"“{name}”" for key, name in rows.values_list("pk", "name")} if ids else {}
