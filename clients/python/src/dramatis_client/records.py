"""What the other calls give back."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Memory:
    """A fact that was written down; one that a bot proposes counts once a person or a policy believes it."""

    id: int
    text: str
    agent: str | None
    state: str

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> "Memory":
        return cls(int(said["id"]), str(said["text"]), said.get("agent"), str(said["state"]))


@dataclass(frozen=True)
class Skill:
    """The full instructions of a skill."""

    name: str
    description: str
    body: str

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> "Skill":
        return cls(str(said["name"]), str(said.get("description", "")), str(said["body"]))
