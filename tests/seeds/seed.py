"""A seed: a layout with the records of its examples.

Records are a dictionary in the form of `PromptInputs`, shortened: texts are strings, files and
responsibilities are dictionaries, and a tool can be the name of one of the seed. A call is a body of
`prompt:render`. `library.py` and `records.py` turn both into prompts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

Values = Mapping[str, Any]


class Prompt(NamedTuple):
    """A prompt as the library builds it, or as a bot is served it."""

    text: str
    warnings: Sequence[str] = ()
    tools: Sequence[Values] = ()
    messages: Sequence[Values] = ()


class Renderer(Protocol):
    """Render the prompt of an agent for a call. Changes to its records last until the end of the test."""

    def __call__(self, agent: str = "bare", given: Values = ..., **call: Any) -> Prompt: ...


@dataclass(frozen=True, kw_only=True)
class Seed:
    """A layout with the tools and agents of its examples."""

    layout: str
    agents: dict[str, Values]
    tools: Mapping[str, Values] = field(default_factory=dict)
    # What every call sends, unless a test sets it to None.
    call: Values = field(default_factory=dict)
    # Where the folders that agents read lie on the bot's machine, with the scope of each.
    sources: Mapping[str, str] = field(default_factory=dict)

    def build_call(self, call: Values) -> dict[str, Any]:
        return {name: value for name, value in {**self.call, **call}.items() if value is not None}

    def list_tools(self, tools: Sequence[str | Values]) -> list[dict[str, Any]]:
        """Return the values of tools, some of which are given by their names."""
        return [
            {"name": tool, **self.tools.get(tool, {})} if isinstance(tool, str) else dict(tool)
            for tool in tools
        ]
