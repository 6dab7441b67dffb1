"""Faults of the record in words for people: agents and channels by their names."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from personas.models import Agent, Channel, Workspace

PROMPT_PATTERN = re.compile(r"agent (\d+) (?:on channel (\d+)|without a channel)")


@dataclass(frozen=True)
class FaultDescription:
    """A bad row and what is wrong with it; `told` is the whole, as programs get it."""

    name: str
    reason: str
    told: str


def describe_faults(workspace: Workspace, faults: Sequence[dict[str, Any]]) -> list[FaultDescription]:
    """Two queries for all of them."""
    found = [PROMPT_PATTERN.findall(f"{fault['key']} {fault['reason']}") for fault in faults]
    agents = get_quoted_names(Agent, workspace, {int(agent) for lines in found for agent, _channel in lines})
    channels = get_quoted_names(
        Channel, workspace, {int(channel) for lines in found for _agent, channel in lines if channel}
    )

    def named(match: re.Match[str]) -> str:
        agent, channel = match[1], match[2]
        who = agents.get(int(agent)) or _("agent %(number)s") % {"number": agent}
        if not channel:
            return who
        where = channels.get(int(channel)) or _("channel %(number)s") % {"number": channel}
        return _("%(agent)s on %(channel)s") % {"agent": who, "channel": where}

    return [
        FaultDescription(
            PROMPT_PATTERN.sub(named, fault["key"]),
            PROMPT_PATTERN.sub(named, fault["reason"]),
            f"{fault['key']}: {fault['reason']}",
        )
        for fault in faults
    ]


def get_quoted_names(
    model: type[Agent] | type[Channel], workspace: Workspace, keys: set[int]
) -> dict[int, str]:
    known = [key for key in keys if key < 2**63]
    rows = model.objects.in_workspace(workspace).filter(pk__in=known)
    return {key: f"“{name}”" for key, name in rows.values_list("pk", "name")} if known else {}
