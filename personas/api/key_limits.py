"""The rule for API keys that are limited to some agents, channels or labels.

Every operation declares with `touches` what it reads or writes. A limited key may use an operation only if
the URL or the body names everything that the key is limited by: a memory names its agent, but it is part of
the prompts on all channels, so a key that is limited to some channels cannot write it. The handlers check
that the named agent, channel or label is one of the key's. An operation without a declaration is closed to
limited keys. docs/keys.md has the same table.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from django.db.models import Model
from django.dispatch import receiver

from personas.api.exception_handler import out_of_scope_problem
from personas.api.problems import ProblemError
from personas.models import Agent
from personas.signals import agent_changed

if TYPE_CHECKING:
    from personas.api.authentication import ApiClient


class Touches(StrEnum):
    """What an operation reads or writes."""

    # Records that agents share, members, the audit log: no agent, channel or label is named.
    WORKSPACE = "workspace"
    # An agent, with its memories, responsibilities and tasks, on all its channels.
    AGENT = "agent"
    # A channel, for all agents that use it.
    CHANNEL = "channel"
    # The prompt of an agent on a channel, with all its labels.
    PROMPT = "prompt"
    # A label of a prompt.
    LABEL = "label"
    # An API key. The handlers compare its scopes with those of the client's key.
    KEY = "key"
    # A report about a prompt, which changes no prompt.
    REPORT = "report"
    # A memory, which is only proposed if the client is a bot that is not trusted.
    PROPOSAL = "proposal"


LIMITS = ("agents", "channels", "labels")
EVERY_LIMIT = frozenset(LIMITS)
# The limits that a key may have for an operation that reads, by what the operation touches. The handlers
# leave out the rows that are outside of these limits.
READABLE_WITH: dict[Touches, frozenset[str]] = {
    Touches.WORKSPACE: frozenset(),
    Touches.AGENT: EVERY_LIMIT,
    Touches.CHANNEL: frozenset({"channels", "labels"}),
    Touches.PROMPT: EVERY_LIMIT,
    Touches.LABEL: EVERY_LIMIT,
    Touches.KEY: EVERY_LIMIT,
    Touches.REPORT: EVERY_LIMIT,
    Touches.PROPOSAL: EVERY_LIMIT,
}
# The same for operations that write.
WRITABLE_WITH: dict[Touches, frozenset[str]] = {
    Touches.WORKSPACE: frozenset(),
    Touches.AGENT: frozenset({"agents"}),
    Touches.CHANNEL: frozenset({"channels"}),
    Touches.PROMPT: frozenset({"agents", "channels"}),
    Touches.LABEL: EVERY_LIMIT,
    Touches.KEY: EVERY_LIMIT,
    Touches.REPORT: EVERY_LIMIT,
    Touches.PROPOSAL: EVERY_LIMIT,
}


def check_key_limits(caller: "ApiClient", touches: Touches | None, *, is_write: bool) -> None:
    """Raise 403 if the key is limited in a way that excludes what an operation touches."""
    limits = list_key_limits(caller)
    if not limits:
        return
    if touches is Touches.PROPOSAL and not is_proposing(caller):
        touches = Touches.AGENT
    allowed = (WRITABLE_WITH if is_write else READABLE_WITH)[touches] if touches else frozenset()
    if exceeded := [name for name in limits if name not in allowed]:
        raise out_of_scope_error(exceeded[0])


def list_key_limits(caller: "ApiClient") -> list[str]:
    return [name for name in LIMITS if name in caller.key.scopes]


def is_proposing(caller: "ApiClient") -> bool:
    """Whether memories of the client wait for approval, so that they change no prompt."""
    return caller.is_bot and not caller.actor.can_activate_memories


def is_within_limit(caller: "ApiClient", dimension: str, name: str) -> bool:
    """Return whether the key may be used for the agent, channel or label with this name."""
    return name in caller.key.scopes.get(dimension, [name])


def out_of_scope_error(dimension: str = "agents") -> ProblemError:
    return ProblemError(out_of_scope_problem(f"This key is limited to specific {dimension}."))


# --- changes of prompts --------------------------------------------------------------------------------

# The client of the current request and what its operation touches, if the client's key is limited.
_limited_client: ContextVar[tuple["ApiClient", Touches | None] | None] = ContextVar(
    "limited_client", default=None
)


@contextmanager
def limit_changes(caller: "ApiClient", touches: Touches | None) -> Iterator[None]:
    """Reject changes that reach prompts outside of the key's limits, for the duration of a request.

    This is the second line of defence. It also covers what only the service knows: an edit of an agent
    rebuilds the prompts of its sub-agents and of the agents that have it as a tool.
    """
    if not caller.is_limited:
        yield
        return
    token = _limited_client.set((caller, touches))
    try:
        yield
    finally:
        _limited_client.reset(token)


@receiver(agent_changed)
def check_changed_agents(
    sender: type[Model], *, workspace_id: int, agent_ids: Iterable[int], **_: Any
) -> None:
    """Raise 403 if a request with a limited key changes prompts outside of its limits.

    The signal is sent in the transaction of the change, so the exception rolls the change back.
    """
    if (current := _limited_client.get()) is None:
        return
    caller, touches = current
    # A proposed memory sends the signal too, although the prompts stay as they are.
    if touches is not Touches.PROPOSAL or not is_proposing(caller):
        allowed = WRITABLE_WITH[touches] - {"labels"} if touches else frozenset()
        if exceeded := [name for name in list_key_limits(caller) if name not in allowed]:
            raise out_of_scope_error(exceeded[0])
    if caller.agents is None:
        return
    agents = Agent.objects.in_workspace(workspace_id).filter(pk__in=list(agent_ids))
    if agents.exclude(slug__in=caller.agents).exists():
        detail = (
            "This key is limited to specific agents, and the change would also affect prompts "
            "of other agents."
        )
        raise ProblemError(out_of_scope_problem(detail))
