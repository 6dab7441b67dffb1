"""OpenAI Agents SDK: instructions that are loaded for each turn.

agent = Agent(name="Mira", instructions=instructions(PromptSource(AsyncClient(), "mira", "web")))
"""

from collections.abc import Awaitable, Callable
from typing import Any

from dramatis_client.adapters.prompt_source import PromptSource

Instructions = Callable[[Any, Any], Awaitable[str]]


def instructions(source: PromptSource) -> Instructions:
    """Return a function for `Agent(instructions=…)`."""

    async def load_instructions(context: Any, agent: Any) -> str:
        prompt = await source.load_async()
        return prompt.text

    return load_instructions
