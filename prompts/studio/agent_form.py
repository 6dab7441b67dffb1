"""An agent's own words: its parts and means have pages of their own, and choosing them is not writing."""

from typing import Any

from personas.agents.forms import AgentForm
from personas.records.forms import RecordForm


class AgentWordsForm(AgentForm):
    """Without the links, which then stay as they are."""

    identity = soul = user_profile = parent = None  # type: ignore[assignment]  # how a form drops fields
    tools = planning_tools = channels = None  # type: ignore[assignment]

    def initial_values(self) -> dict[str, Any]:
        return RecordForm.initial_values(self)

    def link_fields(self) -> None:
        """There is nothing to choose."""
