"""Finds out what a caller should get, or why nothing: asked only when the process does not know yet."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from django.db import connection
from django.utils import timezone

from core.db.workspace_scope import all_workspaces, workspace_scope
from personas.api_keys.format import BOT, is_well_formed_key
from personas.api_keys.scopes import is_in_scope
from personas.errors import InvalidInput
from personas.models import ApiKey, Membership
from prompts.hashed_rows import format_reader
from prompts.models import LATEST, PRODUCTION, AgentPrompt, LabelMove, PromptLabel, PromptVersion
from prompts.serving.cache import ErasureState, get_erasure_state
from prompts.serving.errors import InvalidKey, NoVersion, OutOfScope, PromptNotFound
from prompts.serving.request import Client, KeyClient, MemberClient, PromptRequest, RateLimitCheck


@dataclass(frozen=True)
class Resolution:
    """What held when it was last looked at; the statement writes a row only while it still does."""

    workspace_id: int
    prompt_id: int
    agent_id: int
    channel_id: int
    version_id: int
    erasures: ErasureState
    # As they were asked for.
    agent: str
    channel: str
    label: str
    reader_label: str
    key_id: int | None = None
    user_id: int | None = None
    digest: str = ""
    scopes: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def reader(self) -> str:
        """Key and person as the seal covers them."""
        return format_reader(self.key_id, self.user_id, self.reader_label)

    @cached_property
    def as_json(self) -> str:
        """Its part of what the statement is told, without braces: the same for every fetch by this guess."""
        said = {
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
            "erasures": self.erasures.number,
            "erased_at": format_db_timestamp(self.erasures.last_at),
            "digest": self.digest,
            "scopes": self.scopes,
        }
        return json.dumps(said, ensure_ascii=False)[1:-1]


def format_db_timestamp(at: datetime) -> str:
    """As the database writes it, so that it can be compared there."""
    return str(connection.ops.adapt_datetimefield_value(at))


def check_key_format(reader: Client) -> None:
    """What cannot be a key costs no query."""
    if isinstance(reader, KeyClient) and not is_well_formed_key(reader.secret):
        raise InvalidKey


def resolve_request(reader: Client, wanted: PromptRequest, admit: RateLimitCheck) -> Resolution:
    """Who it is, whether they may, and what the label points at; or the refusal.

    `admit` hears who it is before anything else is asked: what is refused after that is paid for too.
    """
    with all_workspaces():
        facts = authenticate_client(reader)
    admit(facts.get("key_id"), facts["workspace_id"])
    if not is_in_scope(facts.get("scopes", {}), wanted.verb, wanted.agent, wanted.channel, wanted.label):
        raise OutOfScope
    if not wanted.is_nameable:
        raise PromptNotFound
    with workspace_scope(facts["workspace_id"]):
        return build_resolution(facts, wanted)


def build_resolution(facts: dict[str, Any], wanted: PromptRequest) -> Resolution:
    workspace_id: int = facts["workspace_id"]
    # Looked at before the words are read: what is erased in between then shows.
    erasures = get_erasure_state(workspace_id)
    prompt = find_requested_prompt(workspace_id, wanted)
    version_id = (
        get_version_id_at(prompt, wanted) if wanted.at else get_current_version_id(prompt, wanted.label)
    )
    return Resolution(
        prompt_id=prompt.pk,
        agent_id=prompt.agent_id,
        channel_id=prompt.channel_id,
        version_id=version_id,
        erasures=erasures,
        agent=wanted.agent,
        channel=wanted.channel,
        label=wanted.label,
        **facts,
    )


def authenticate_client(reader: Client) -> dict[str, Any]:
    return authenticate_key(reader) if isinstance(reader, KeyClient) else authenticate_member(reader)


def authenticate_key(bot: KeyClient) -> dict[str, Any]:
    """The one look beyond a workspace: the key says which it is."""
    rows = ApiKey.unscoped.filter(digest=bot.digest, revoked_at=None, expires_at__gt=timezone.now())
    key = rows.first()
    if key is None or (key.kind != BOT and not is_member(key.workspace_id, key.created_by_id)):
        raise InvalidKey
    return {
        "workspace_id": key.workspace_id,
        "key_id": key.pk,
        "reader_label": key.name,
        "digest": key.digest,
        "scopes": key.scopes,
    }


def authenticate_member(member: MemberClient) -> dict[str, Any]:
    if not is_member(member.workspace.pk, member.user.pk):
        raise PromptNotFound
    return {
        "workspace_id": member.workspace.pk,
        "user_id": member.user.pk,
        "reader_label": member.user.email,
    }


def is_member(workspace_id: int, user_id: int | None) -> bool:
    if user_id is None:
        return False
    rows = Membership.objects.in_workspace(workspace_id)
    return rows.filter(user_id=user_id, user__is_active=True).exists()


def find_requested_prompt(workspace_id: int, wanted: PromptRequest) -> AgentPrompt:
    """In use now; for a moment in the past it is enough that it was once."""
    rows = AgentPrompt.objects.in_workspace(workspace_id)
    rows = rows.filter(agent__slug=wanted.agent, channel__slug=wanted.channel)
    if wanted.at is None:
        rows = rows.filter(is_live=True, agent__archived_at=None, channel__archived_at=None)
    prompt = rows.first()
    if prompt is None:
        raise PromptNotFound
    return prompt


def get_current_version_id(prompt: AgentPrompt, label: str) -> int:
    if label == LATEST:
        if prompt.latest_id is None:
            raise NoVersion
        return prompt.latest_id
    rows = PromptLabel.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt, name=label)
    found = rows.values_list("version_id", flat=True).first()
    if found is None:
        # Every prompt is to have a production version one day; any other label is simply not there.
        raise NoVersion if label == PRODUCTION else PromptNotFound
    return found


def get_version_id_at(prompt: AgentPrompt, wanted: PromptRequest) -> int:
    """What the label pointed at in that moment."""
    at = wanted.at
    if at is None or at.tzinfo is None or at > timezone.now():
        raise InvalidInput.on("at", "Name a moment that has passed, with its offset from UTC.")
    # A database does not know every offset that can be written.
    at = at.astimezone(UTC)
    if wanted.label == LATEST:
        versions = PromptVersion.objects.in_workspace(prompt.workspace_id).filter(
            prompt=prompt, created_at__lte=at
        )
        found = versions.order_by("-created_at", "-number").values_list("pk", flat=True).first()
    else:
        moves = LabelMove.objects.in_workspace(prompt.workspace_id).filter(
            prompt=prompt, label=wanted.label, at__lte=at
        )
        found = moves.order_by("-at", "-sequence").values_list("version_id", flat=True).first()
    if found is None:
        raise NoVersion("There was no version at that moment.")
    return found
