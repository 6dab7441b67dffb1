"""Prompts in the formats of model providers and frameworks."""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from importlib import import_module
from typing import Any

from dramatis_client.prompt_parts import Block, Message

Tool = Mapping[str, Any]
EPHEMERAL = {"type": "ephemeral"}


def build_openai_messages(text: str, messages: Iterable[Message], role: str) -> list[dict[str, Any]]:
    return [{"role": role, "content": text}, *build_messages(messages)]


def build_messages(messages: Iterable[Message]) -> list[dict[str, Any]]:
    return [{"role": message.role, "content": message.content} for message in messages]


def build_openai_tools(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    return [{"type": "function", "function": build_tool(tool, "parameters")} for tool in tools]


def build_responses_tools(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    return [{"type": "function", **build_tool(tool, "parameters"), "strict": False} for tool in tools]


def build_anthropic_tools(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    return [build_tool(tool, "input_schema") for tool in tools]


def build_tool(tool: Tool, schema_name: str) -> dict[str, Any]:
    """Build a definition that the caller may change: cached prompts are shared."""
    schema = {"type": "object", "properties": {}} | deepcopy(dict(tool.get("parameters") or {}))
    return {"name": tool["name"], "description": tool.get("description") or "", schema_name: schema}


def build_anthropic_blocks(blocks: Sequence[Block], max_marks: int) -> list[dict[str, Any]]:
    """Mark the last cacheable blocks. A mark caches everything before it: one caches the longest prefix."""
    if max_marks < 0:
        raise ValueError("max_marks must be at least 0.")
    # The API rejects empty blocks.
    filled = [block for block in blocks if block.text]
    cacheable = sum(block.is_cacheable for block in filled)
    marked = range(max(0, cacheable - max_marks), cacheable)
    return [
        {"type": "text", "text": block.text} | ({"cache_control": dict(EPHEMERAL)} if index in marked else {})
        for index, block in enumerate(filled)
    ]


def build_langchain_messages(
    text: str, blocks: Sequence[Block], messages: Iterable[Message], max_marks: int
) -> list[Any]:
    """Build message objects. Text in objects is no template: braces in a prompt stay as they are."""
    try:
        # Imported here, because only those who use LangChain have it.
        langchain = import_module("langchain_core.messages")
    except ImportError as error:
        raise ImportError("Install langchain-core, or dramatis-client[langchain].") from error
    content: Any = build_anthropic_blocks(blocks, max_marks) if max_marks else text
    classes = {"user": langchain.HumanMessage, "assistant": langchain.AIMessage}
    return [
        langchain.SystemMessage(content=content),
        *[classes[message.role](content=message.content) for message in messages],
    ]
