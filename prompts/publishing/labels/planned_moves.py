"""Label moves that are to be made: they are checked (approval.py) and then written (moves.py)."""

from dataclasses import dataclass

from prompts.models import AgentPrompt, MoveReason, PromptVersion, Release


@dataclass(frozen=True)
class PlannedMove:
    """A label move that is to be made. If `version` is None, the label is removed.

    The prompt must be locked by the caller.
    """

    prompt: AgentPrompt
    label: str
    version: PromptVersion | None
    reason: MoveReason
    by: str
    note: str = ""
    release: Release | None = None
