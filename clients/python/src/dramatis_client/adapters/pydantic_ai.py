"""Pydantic AI: a system prompt that is loaded for each run, and the tools of the prompt.

agent = Agent(model)
add_system_prompt(agent, PromptSource(AsyncClient(), "mira", "web"))
"""

from importlib import import_module
from typing import Any

from dramatis_client.adapters.prompt_source import PromptSource
from dramatis_client.prompts import Prompt


def add_system_prompt(agent: Any, source: PromptSource) -> None:
    """Add the prompt to an agent; in later runs with a message history it is loaded again.

    It is a system prompt and not `instructions`, because these lose spaces and line ends at both ends.
    """

    async def load_system_prompt() -> str:
        prompt = await source.load_async()
        return prompt.text

    agent.system_prompt(dynamic=True)(load_system_prompt)


def build_toolset(prompt: Prompt) -> Any:
    """Return the tools of the prompt as a toolset, whose calls the caller answers."""
    tools, toolsets = import_module("pydantic_ai.tools"), import_module("pydantic_ai.toolsets")
    return toolsets.ExternalToolset(
        [
            tools.ToolDefinition(
                name=tool["name"],
                description=tool["description"],
                parameters_json_schema=tool["parameters"],
            )
            for tool in [one["function"] for one in prompt.to_openai_tools()]
        ]
    )
