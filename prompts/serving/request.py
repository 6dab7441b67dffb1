"""Who asks, and for what."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property

from personas.api_keys.format import key_digest
from personas.api_keys.scopes import FETCH
from personas.models import User, Workspace
from prompts.assembly.slots import Slots
from prompts.models import PRODUCTION, LedgerEntry

SLUG_PATTERN = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
MAX_SLUG_LENGTH = 64
# What most callers say: the time is ours to tell.
EMPTY_SLOTS = Slots()
MAX_LABEL_LENGTH = LedgerEntry._meta.get_field("label").max_length or 0


@dataclass(frozen=True)
class KeyClient:
    """Somebody with a key; the workspace is the key's, never the caller's choice."""

    secret: str = field(repr=False)

    @cached_property
    def digest(self) -> str:
        # No key has other characters; what is no key has no digest either.
        return key_digest(self.secret) if self.secret.isascii() else ""

    @property
    def name(self) -> str:
        """What the process remembers them by: never the secret itself."""
        return self.digest


@dataclass(frozen=True)
class MemberClient:
    """A person in a workspace."""

    workspace: Workspace
    user: User

    @property
    def name(self) -> str:
        return f"{self.workspace.pk}/{self.user.pk}"


Client = KeyClient | MemberClient


@dataclass(frozen=True)
class CallContext:
    """The facts of one call, and the digests of the versions that the caller has already, if any."""

    slots: Slots
    request_id: str
    # A star stands for all.
    known: tuple[str, ...] = ()

    def has(self, digest: str) -> bool:
        return bool(self.known) and (digest in self.known or "*" in self.known)


@dataclass(frozen=True)
class PromptRequest:
    """A prompt by agent, channel and label; with a moment, what the label pointed at then."""

    agent: str
    channel: str
    label: str = PRODUCTION
    at: datetime | None = None
    verb: str = FETCH

    @property
    def is_nameable(self) -> bool:
        """Whether anything can be called so: no other word is worth a question, or safe to ask with."""
        words = (self.agent, self.channel, self.label)
        return all(len(word) <= MAX_SLUG_LENGTH and SLUG_PATTERN.fullmatch(word) for word in words)

    @property
    def recorded_label(self) -> str:
        """As the ledger has it. No label holds an @, so those who asked for the past are told apart."""
        if self.at is None:
            return self.label
        moment = f"@{self.at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        return f"{self.label[: MAX_LABEL_LENGTH - len(moment)]}{moment}"


RateLimitCheck = Callable[[int | None, int], None]


def allow_all(key_id: int | None, workspace_id: int) -> None:
    """No limit."""


class RateLimitOnce:
    """Paid once for each call, as soon as it is known by whom; whoever is refused later has paid too."""

    def __init__(self, admit: RateLimitCheck) -> None:
        self._admit, self._is_paid = admit, False

    def pay(self, key_id: int | None, workspace_id: int) -> None:
        if not self._is_paid:
            self._is_paid = True
            self._admit(key_id, workspace_id)
