"""Python client of Dramatis: fetch prompts, and use the cached copy while the server is unavailable."""

from dramatis_client.async_client import AsyncClient
from dramatis_client.client import Client
from dramatis_client.facts import RenderFacts
from dramatis_client.problems import DramatisError, FieldError, Problem, Unreachable
from dramatis_client.prompts import CacheBoundary, Message, Prompt, Segment
from dramatis_client.records import Memory, Skill
from dramatis_client.version import __version__

__all__ = [
    "AsyncClient",
    "CacheBoundary",
    "Client",
    "DramatisError",
    "FieldError",
    "Memory",
    "Message",
    "Problem",
    "Prompt",
    "RenderFacts",
    "Segment",
    "Skill",
    "Unreachable",
    "__version__",
]
