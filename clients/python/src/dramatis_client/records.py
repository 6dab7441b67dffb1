"""Records returned by the other API calls."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Memory:
    """A memory. One proposed by a bot is used in prompts after a member or a policy approves it."""

    id: int
    text: str
    agent: str | None
    status: str

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "Memory":
        return cls(int(document["id"]), str(document["text"]), document.get("agent"), str(document["status"]))


@dataclass(frozen=True)
class Skill:
    """A skill with its full instructions."""

    name: str
    description: str
    body: str

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "Skill":
        return cls(str(document["name"]), str(document.get("description", "")), str(document["body"]))
