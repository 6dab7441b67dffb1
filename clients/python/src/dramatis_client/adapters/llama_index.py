"""LlamaIndex: its agents take the system prompt when they are built, so build one for each run.

agent = build_agent(FunctionAgent, await source.load_async(), llm=llm, tools=tools)
response = await agent.run("Hello.")
"""

from importlib import import_module
from typing import Any, TypeVar

from dramatis_client.prompts import Prompt

AgentT = TypeVar("AgentT")


def build_agent(agent_class: type[AgentT], prompt: Prompt, **options: Any) -> AgentT:
    """Build an agent, such as FunctionAgent, with the prompt as its system prompt."""
    return agent_class(**{"name": prompt.agent, **options, "system_prompt": prompt.text})


def build_chat_messages(prompt: Prompt) -> list[Any]:
    """Return the prompt and its messages for `llm.chat`."""
    llms = import_module("llama_index.core.llms")
    return [llms.ChatMessage(role=one["role"], content=one["content"]) for one in prompt.to_openai()]
