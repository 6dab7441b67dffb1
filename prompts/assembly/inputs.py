"""The inputs of a prompt as frozen dataclasses, readable from JSON.

Fields and class docstrings are published in the JSON schema.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from prompts.assembly.segments import Origin

JsonObject = Mapping[str, Any]
EMPTY_OBJECT: JsonObject = MappingProxyType({})


@dataclass(frozen=True)
class Text:
    """Words of one origin."""

    text: str
    origin: Origin = Origin()


@dataclass(frozen=True)
class IdentityInput:
    """Who the agent is."""

    name: str = ""
    emoji: str = ""
    creature: str = ""
    vibe: str = ""
    text: str = ""
    origin: Origin = Origin("identity")


@dataclass(frozen=True)
class UserProfileInput:
    """Whom the agent speaks to."""

    name: str = ""
    timezone: str = ""
    location: str = ""
    notes: str = ""
    origin: Origin = Origin("user_profile")


@dataclass(frozen=True)
class ResponsibilityInput:
    title: str
    text: str = ""
    origin: Origin = Origin("responsibility")


@dataclass(frozen=True)
class MemoryInput:
    text: str
    origin: Origin = Origin("memory")


@dataclass(frozen=True)
class ContextFileInput:
    """A file found on disk, in the order it was discovered: outermost first."""

    path: str
    text: str
    origin: Origin = Origin("context_file")


@dataclass(frozen=True)
class SkillInput:
    """Name and description of a skill; the body is loaded only on demand."""

    name: str
    description: str
    location: str = ""
    disable_model_invocation: bool = False
    origin: Origin = Origin("skill")


@dataclass(frozen=True)
class ToolInput:
    """A tool the agent may call, or only plan with."""

    name: str
    description: str = ""
    snippet: str = ""
    guidelines: tuple[str, ...] = ()
    parameters: JsonObject | None = None
    signature: str = ""
    use: Literal["active", "planning"] = "active"
    origin: Origin = Origin("tool")


@dataclass(frozen=True)
class ChannelInput:
    """Where the agent speaks."""

    name: str
    formatting: str = ""
    origin: Origin = Origin("channel")


@dataclass(frozen=True)
class Data:
    """Values a generated program can read, with their types as a signature and names to hide."""

    values: JsonObject = field(default_factory=dict)
    signature: str = ""
    origin: Origin = Origin("data")
    # Names of further fields to hide, besides those that begin with `_`.
    hidden: tuple[str, ...] = ()


@dataclass(frozen=True)
class Documentation:
    """Where the harness's own documentation lies."""

    main: str = ""
    additional: str = ""
    examples: str = ""


@dataclass(frozen=True)
class Limits:
    """How much of what may go in; characters, except list_sample."""

    total: int | None = None
    parts: Mapping[str, int] = field(default_factory=dict)
    per_file: int = 20_000
    all_files: int = 60_000
    list_sample: int = 3
    string_truncate: int = 500
    omit_reference: bool = False


@dataclass(frozen=True)
class PromptInputs:
    """One agent on one channel, ready to be assembled in any layout."""

    agent: str = ""
    identity: IdentityInput | None = None
    soul: Text | None = None
    user: UserProfileInput | None = None
    instructions: Text | None = None
    base: Text | None = None
    append: Text | None = None
    responsibilities: tuple[ResponsibilityInput, ...] = ()
    memories: tuple[MemoryInput, ...] = ()
    context_files: tuple[ContextFileInput, ...] = ()
    workspace_files: tuple[ContextFileInput, ...] = ()
    skills: tuple[SkillInput, ...] = ()
    tools: tuple[ToolInput, ...] = ()
    native_tools: bool = True
    working_directory: str = ""
    # The home directory on the bot's machine.
    home: str = ""
    directories: tuple[str, ...] = ()
    # None: not stated. An empty tuple states that the agent has none.
    capabilities: tuple[str, ...] | None = None
    channel: ChannelInput | None = None
    data: Data | None = None
    mission: Text | None = None
    documentation: Documentation | None = None
    limits: Limits = Limits()
    mode: Literal["agent", "single_turn"] = "agent"
    entry: Literal["full", "simple", "minimal"] = "full"
    is_sub_agent: bool = False

    def active_tools(self) -> tuple[ToolInput, ...]:
        return tuple([tool for tool in self.tools if tool.use == "active"])

    def planning_tools(self) -> tuple[ToolInput, ...]:
        return tuple([tool for tool in self.tools if tool.use == "planning"])
