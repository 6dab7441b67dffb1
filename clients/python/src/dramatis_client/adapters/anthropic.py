"""Anthropic's Python package: arguments of the messages API.

arguments = message_arguments(source.load(), messages)
response = anthropic.messages.create(model=model, max_tokens=1024, **arguments)
"""

from collections.abc import Iterable, Mapping
from typing import Any

from dramatis_client.prompts import Prompt


def message_arguments(
    prompt: Prompt, messages: Iterable[Mapping[str, Any]] = (), *, max_marks: int = 1
) -> dict[str, Any]:
    """Return `system` with cache marks, `messages`, and `tools` if the prompt has some.

    Tools stand before the system prompt in the cache, so its first mark caches them too.
    """
    before = [{"role": one.role, "content": one.content} for one in prompt.messages]
    arguments: dict[str, Any] = {
        "system": prompt.to_anthropic(max_marks=max_marks),
        "messages": [*before, *messages],
    }
    tools = prompt.to_anthropic_tools()
    return arguments | ({"tools": tools} if tools else {})
