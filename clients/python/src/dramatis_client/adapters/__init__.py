"""Adapters for agent frameworks and model providers, each an extra: `pip install dramatis-client[anthropic]`.

An adapter takes its prompt from a `PromptSource`.
"""

from dramatis_client.adapters.prompt_source import PromptSource
from dramatis_client.spans import set_span_attributes

__all__ = ["PromptSource", "set_span_attributes"]
