"""Types of the serving path: clients, prompt requests, their resolutions and the context of a call."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from personas.api_keys.format import key_digest
from personas.api_keys.scopes import FETCH
from personas.models import User, Workspace
from prompts.assembly.slots import Slots
from prompts.models import PRODUCTION, LedgerEntry
from prompts.proof_rows import format_reader
from prompts.serving.warnings import ReportWarnings

SLUG_PATTERN = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
MAX_SLUG_LENGTH = 64
# The slots of a call that sends none, as most calls do. The server then fills in only the current time.
EMPTY_SLOTS = Slots()
MAX_LABEL_LENGTH = LedgerEntry._meta.get_field("label").max_length or 0


def is_slug(name: str) -> bool:
    return len(name) <= MAX_SLUG_LENGTH and SLUG_PATTERN.fullmatch(name) is not None


@dataclass(frozen=True)
class KeyClient:
    """A client with an API key. The workspace is that of the key."""

    secret: str = field(repr=False)

    @cached_property
    def digest(self) -> str:
        # Valid keys are ASCII. For other secrets the digest is empty, which matches no key.
        return key_digest(self.secret) if self.secret.isascii() else ""

    @property
    def name(self) -> str:
        """Name of the client in cache keys. It does not contain the secret."""
        return self.digest


@dataclass(frozen=True)
class MemberClient:
    """A signed-in member of a workspace."""

    workspace: Workspace
    user: User

    @property
    def name(self) -> str:
        return f"{self.workspace.pk}/{self.user.pk}"


Client = KeyClient | MemberClient


@dataclass(frozen=True)
class CallContext:
    """The slots of one call, its request id, and the digests of the versions that the client already has."""

    slots: Slots
    request_id: str
    # From the If-None-Match header or the `known_digest` of a batch item. `*` matches any version.
    known_digests: tuple[str, ...] = ()
    # The traceparent header of the request; empty if it is missing or invalid.
    traceparent: str = ""

    def has_digest(self, digest: str) -> bool:
        return bool(self.known_digests) and (digest in self.known_digests or "*" in self.known_digests)


@dataclass(frozen=True)
class PromptRequest:
    """A request for the prompt of an agent on a channel, at the version that the label points to.

    With `at`, the version is the one that the label pointed to at that time. With `version`, it is the one
    with this number, if the label points or pointed to it. With both, it is the version with this number, if
    the label pointed to it at that time.
    """

    agent: str
    channel: str
    label: str = PRODUCTION
    at: datetime | None = None
    action: str = FETCH
    version: int | None = None

    @property
    def has_fixed_version(self) -> bool:
        """Whether the request names its version, by time or number, instead of following the label."""
        return self.at is not None or self.version is not None

    @property
    def has_valid_slugs(self) -> bool:
        """Whether agent, channel and label are valid slugs. Other names cannot exist: no query is needed."""
        return is_slug(self.agent) and is_slug(self.channel) and is_slug(self.label)

    @property
    def recorded_label(self) -> str:
        """The label as the ledger stores it.

        With `at` or `version`, that is appended: `production@2026-03-07T14:55:05Z`, `production@v3`. With
        both it is the time; the row names the version. Label names contain no @.
        """
        if self.at is not None:
            suffix = f"@{self.at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        elif self.version is not None:
            suffix = f"@v{self.version}"
        else:
            return self.label
        return f"{self.label[: MAX_LABEL_LENGTH - len(suffix)]}{suffix}"


@dataclass(frozen=True)
class Resolution:
    """The rows that a prompt request refers to: key or user, prompt and version.

    A cached resolution may be outdated. The INSERT of the ledger row therefore checks it again.
    """

    workspace_id: int
    prompt_id: int
    agent_id: int
    channel_id: int
    version_id: int
    erasures: int
    # Content digest of the report of the last build; empty for a request that names its version.
    report: str
    # The warnings of that report; None for a request that names its version.
    current_warnings: ReportWarnings | None
    # Whether the version is that of the last build.
    is_latest: bool
    # The release policy of the agent.
    release_policy: str
    # Agent, channel and label as in the request.
    agent: str
    channel: str
    label: str
    reader_label: str
    key_id: int | None = None
    is_bot: bool = False
    user_id: int | None = None
    digest: str = ""
    scopes: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def reader(self) -> str:
        """Key and user, formatted for the seal of the ledger row."""
        return format_reader(self.key_id, self.user_id, self.reader_label)

    @cached_property
    def as_json(self) -> str:
        """The JSON members of a draft ledger row that every fetch with this resolution has in common.

        Without the enclosing braces, so that the other members can be appended.
        """
        members = {
            "workspace_id": self.workspace_id,
            "key_id": self.key_id,
            "user_id": self.user_id,
            "reader_label": self.reader_label,
            "prompt_id": self.prompt_id,
            "version_id": self.version_id,
            "agent_id": self.agent_id,
            "agent": self.agent,
            "channel_id": self.channel_id,
            "channel": self.channel,
            "label_name": self.label,
            "report": self.report,
            "release_policy": self.release_policy,
            "erasures": self.erasures,
            "digest": self.digest,
            "scopes": self.scopes,
        }
        return json.dumps(members, ensure_ascii=False)[1:-1]


# Called with the key id (None for members) and the workspace id. It raises if the rate limit is exceeded.
RateLimitCheck = Callable[[int | None, int], None]


def allow_all(key_id: int | None, workspace_id: int) -> None:
    """Apply no rate limit."""


class RateLimitOnce:
    """Charge the rate limit once per request, although serving may take several attempts."""

    def __init__(self, check_rate_limit: RateLimitCheck) -> None:
        self._check_rate_limit, self._is_charged = check_rate_limit, False

    def charge(self, key_id: int | None, workspace_id: int) -> None:
        if not self._is_charged:
            self._is_charged = True
            self._check_rate_limit(key_id, workspace_id)
