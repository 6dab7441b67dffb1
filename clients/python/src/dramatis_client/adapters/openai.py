"""OpenAI's Python package: arguments of chat completions and of the responses API.

response = openai.chat.completions.create(model=model, **chat_arguments(source.load(), messages))
"""

from collections.abc import Iterable, Mapping
from typing import Any

from dramatis_client.prompts import Prompt


def chat_arguments(
    prompt: Prompt, messages: Iterable[Mapping[str, Any]] = (), *, role: str = "system"
) -> dict[str, Any]:
    """Return `messages`, which begin with the prompt, and `tools` if the prompt has some."""
    arguments: dict[str, Any] = {"messages": [*prompt.to_openai(role=role), *messages]}
    tools = prompt.to_openai_tools()
    return arguments | ({"tools": tools} if tools else {})


def responses_arguments(prompt: Prompt, messages: Iterable[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """Return `instructions`, `input`, and `tools` if the prompt has some."""
    before = [{"role": one.role, "content": one.content} for one in prompt.messages]
    arguments: dict[str, Any] = {"instructions": prompt.text, "input": [*before, *messages]}
    tools = prompt.to_responses_tools()
    return arguments | ({"tools": tools} if tools else {})
