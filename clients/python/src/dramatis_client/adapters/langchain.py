"""LangChain: a middleware that loads the system prompt for each model call.

agent = create_agent(model, tools, middleware=[build_middleware(PromptSource(Client(), "mira", "web"))])
"""

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

from dramatis_client.adapters.prompt_source import PromptSource


def build_middleware(source: PromptSource, *, max_marks: int = 0) -> Any:
    """Return the middleware. With marks, the system message has Anthropic's blocks."""
    base: Any = import_module("langchain.agents.middleware").AgentMiddleware

    class DramatisPrompt(base):  # type: ignore[misc]  # known only at run time
        """Replace the system message by the prompt."""

        def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            message = source.load().to_langchain(max_marks=max_marks)[0]
            return handler(request.override(system_message=message))

        async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
            prompt = await source.load_async()
            message = prompt.to_langchain(max_marks=max_marks)[0]
            return await handler(request.override(system_message=message))

    return DramatisPrompt()
