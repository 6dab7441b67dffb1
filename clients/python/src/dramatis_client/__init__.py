"""Python client of Dramatis: fetch prompts, and use the cached copy while the server is unavailable."""

from dramatis_client.async_client import AsyncClient
from dramatis_client.client import Client
from dramatis_client.facts import RenderFacts
from dramatis_client.problems import DramatisError, FieldError, NotFillable, Problem, Unreachable
from dramatis_client.prompt_parts import Block, Message, Segment
from dramatis_client.prompts import Prompt
from dramatis_client.records import Memory, Skill
from dramatis_client.version import __version__

__all__ = [
    "AsyncClient",
    "Block",
    "Client",
    "DramatisError",
    "FieldError",
    "Memory",
    "Message",
    "NotFillable",
    "Problem",
    "Prompt",
    "RenderFacts",
    "Segment",
    "Skill",
    "Unreachable",
    "__version__",
]
