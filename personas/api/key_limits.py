"""The rule for API keys that are limited to some agents, channels or labels.

Every operation declares with `touches` what it reads or writes. A limited key may use an operation only if
the URL or the body names everything that the key is limited by: a memory names its agent, but it is part of
the prompts on all channels, so a key that is limited to some channels cannot write it. The handlers check
that the named agent, channel or label is one of the key's. An operation without a declaration is closed to
limited keys. docs/keys.md has the same table.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from django.db.models import Model, Q, QuerySet
from django.dispatch import receiver

from personas.api.exception_handler import out_of_scope_problem
from personas.api.problems import ProblemError
from personas.models import Agent, AgentChannel, AgentTool, Record, Workspace
from personas.signals import agent_changed

if TYPE_CHECKING:
    from personas.api.authentication import ApiClient


class Touches(StrEnum):
    """What an operation reads or writes."""

    # Records that agents share, members, the audit log: not specific to an agent, channel or label.
    WORKSPACE = "workspace"
    # An agent, with its memories, responsibilities and tasks, on all its channels.
    AGENT = "agent"
    # A channel, for all agents that use it.
    CHANNEL = "channel"
    # The prompt of an agent on a channel, with all labels of the prompt.
    PROMPT = "prompt"
    # A label of a prompt.
    LABEL = "label"
    # An API key. The handlers compare the scopes of that key with those of the client's key.
    KEY = "key"
    # A report about a prompt, which changes no prompt.
    REPORT = "report"
    # A memory, which is only proposed if the client is a bot that is not trusted.
    PROPOSAL = "proposal"


LIMITS = ("agents", "channels", "labels")
EVERY_LIMIT = frozenset(LIMITS)
# For operations that read, by what they touch: the limits that a key may have and still use the operation.
# The handlers leave out the rows that are outside of these limits.
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


# --- links to shared records ---------------------------------------------------------------------------

PERSONA_FIELDS = ("identity", "soul", "user_profile")
# Other apps register functions here that return ids of records of one kind. USED_RECORD_SOURCES: records that
# agents use in a way that this app does not know, such as through prompt settings. DEFAULT_RECORD_SOURCES:
# records that agents get if they have none of their own.
USED_RECORD_SOURCES: list[Callable[["ApiClient", str], "QuerySet[Any, Any]"]] = []
DEFAULT_RECORD_SOURCES: list[Callable[[Workspace, str], set[int]]] = []


def list_linkable(caller: "ApiClient", model: type[Record]) -> "QuerySet[Any]":
    """Return the records that the client may link, for example choose as the soul of an agent.

    A linked record is part of prompts, which the client reads. So a limited key links only agents and
    channels within its limits, and other records that are already used within its limits.
    """
    rows: QuerySet[Any] = model.objects.in_workspace(caller.workspace).filter(archived_at=None)
    dimension = f"{model.kind}s"
    if dimension in caller.key.scopes:
        rows = rows.filter(slug__in=caller.key.scopes[dimension])
    if not caller.is_limited or dimension in caller.key.scopes or model is Agent:
        return rows
    is_used = Q(pk__in=query_used_ids(caller, model.kind))
    for source in USED_RECORD_SOURCES:
        is_used |= Q(pk__in=source(caller, model.kind))
    return rows.filter(is_used)


def query_used_ids(caller: "ApiClient", kind: str) -> "QuerySet[Any, Any]":
    """Return the ids of the records of a kind that the agents within the limits of a key use."""
    agents = Agent.objects.in_workspace(caller.workspace)
    channels = AgentChannel.objects.in_workspace(caller.workspace)
    if "agents" in caller.key.scopes:
        agents = agents.filter(slug__in=caller.key.scopes["agents"])
    if "channels" in caller.key.scopes:
        on_channels = channels.filter(channel__slug__in=caller.key.scopes["channels"])
        agents = agents.filter(pk__in=on_channels.values("agent"))
    if kind in PERSONA_FIELDS:
        used: QuerySet[Any, Any] = agents.exclude(**{kind: None}).values(kind)
        return used
    if kind == "tool":
        return AgentTool.objects.in_workspace(caller.workspace).filter(agent__in=agents).values("tool")
    if kind == "channel":
        return channels.filter(agent__in=agents).values("channel")
    # Nothing else can be linked with a limited key.
    return agents.none().values("pk")


def check_default_readable(caller: "ApiClient", record: Record, values: Mapping[str, Any]) -> None:
    """Raise 403 if the agent would get the default of the workspace, which the key may not read.

    This applies to limited keys that remove the identity, soul or user profile of an agent.
    """
    if not caller.is_limited or not isinstance(record, Agent):
        return
    for name in PERSONA_FIELDS:
        if values.get(name, record) is None and getattr(record, name) is not None:
            model = type(getattr(record, name))
            defaults = {key for source in DEFAULT_RECORD_SOURCES for key in source(caller.workspace, name)}
            allowed = list_linkable(caller, model).filter(pk__in=defaults).values_list("pk", flat=True)
            if defaults - set(allowed):
                raise ProblemError(out_of_scope_problem(DEFAULT_DETAIL.format(name=name.replace("_", " "))))


def check_restored_links(
    caller: "ApiClient",
    record: Record,
    values: Mapping[str, Any],
    links: Mapping[str, tuple[type[Record], str]],
    link_lists: Mapping[str, tuple[type[Record], str]],
) -> None:
    """Raise 403 if a limited key would restore a revision with links that it may not choose.

    `values` are those of the revision. A record also stays with its agent.
    """
    for name, (model, _) in {**links, **link_lists}.items():
        if name not in values or (name in links and values[name] == getattr(record, name)):
            continue
        if model is Agent and name in links:
            raise out_of_scope_error()
        linked = values[name] if name in link_lists else [values[name]]
        ids = {one.pk for one in linked if one is not None}
        if list_linkable(caller, model).filter(pk__in=ids).count() < len(ids):
            raise ProblemError(out_of_scope_problem(LINK_DETAIL))
    check_default_readable(caller, record, values)


LINK_DETAIL = "This key is limited, and the revision links records that no agent within its limits uses."
DEFAULT_DETAIL = (
    "This key is limited, and the agent would get the {name} of the workspace, which this key cannot read."
)


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
    # Proposing a memory sends the signal too, although it changes no prompt.
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
