"""Finds out what a caller should get, or why nothing: asked only when the process does not know yet."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from django.db import connection
from django.utils import timezone

from core.db.workspace_scope import everywhere, within
from personas.api_keys.format import BOT, well_formed
from personas.api_keys.scopes import allows
from personas.errors import Invalid
from personas.models import ApiKey, Membership
from prompts.hashed_rows import reader_of
from prompts.models import LATEST, PRODUCTION, AgentPrompt, LabelMove, PromptLabel, PromptVersion
from prompts.serving.cache import Erasures, erasures_in
from prompts.serving.errors import BadKey, NotThere, NoVersion, OutOfScope
from prompts.serving.request import Admit, Bot, Member, Reader, Wanted


@dataclass(frozen=True)
class Guess:
    """What held when it was last looked at; the statement writes a row only while it still does."""

    workspace_id: int
    prompt_id: int
    agent_id: int
    channel_id: int
    version_id: int
    erasures: Erasures
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
        return reader_of(self.key_id, self.user_id, self.reader_label)

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
            "erased_at": stored_moment(self.erasures.last_at),
            "digest": self.digest,
            "scopes": self.scopes,
        }
        return json.dumps(said, ensure_ascii=False)[1:-1]


def stored_moment(at: datetime) -> str:
    """As the database writes it, so that it can be compared there."""
    return str(connection.ops.adapt_datetimefield_value(at))


def refuse_malformed(reader: Reader) -> None:
    """What cannot be a key costs no query."""
    if isinstance(reader, Bot) and not well_formed(reader.secret):
        raise BadKey


def resolve(reader: Reader, wanted: Wanted, admit: Admit) -> Guess:
    """Who it is, whether they may, and what the label points at; or the refusal.

    `admit` hears who it is before anything else is asked: what is refused after that is paid for too.
    """
    with everywhere():
        facts = facts_of(reader)
    admit(facts.get("key_id"), facts["workspace_id"])
    if not allows(facts.get("scopes", {}), wanted.verb, wanted.agent, wanted.channel, wanted.label):
        raise OutOfScope
    if not wanted.is_nameable:
        raise NotThere
    with within(facts["workspace_id"]):
        return guessed(facts, wanted)


def guessed(facts: dict[str, Any], wanted: Wanted) -> Guess:
    workspace_id: int = facts["workspace_id"]
    # Looked at before the words are read: what is erased in between then shows.
    erasures = erasures_in(workspace_id)
    prompt = prompt_asked_for(workspace_id, wanted)
    version_id = version_then(prompt, wanted) if wanted.at else version_now(prompt, wanted.label)
    return Guess(
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


def facts_of(reader: Reader) -> dict[str, Any]:
    return facts_of_key(reader) if isinstance(reader, Bot) else facts_of_member(reader)


def facts_of_key(bot: Bot) -> dict[str, Any]:
    """The one look beyond a workspace: the key says which it is."""
    rows = ApiKey.unscoped.filter(digest=bot.digest, revoked_at=None, expires_at__gt=timezone.now())
    key = rows.first()
    if key is None or (key.kind != BOT and not is_member(key.workspace_id, key.created_by_id)):
        raise BadKey
    return {
        "workspace_id": key.workspace_id,
        "key_id": key.pk,
        "reader_label": key.name,
        "digest": key.digest,
        "scopes": key.scopes,
    }


def facts_of_member(member: Member) -> dict[str, Any]:
    if not is_member(member.workspace.pk, member.user.pk):
        raise NotThere
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


def prompt_asked_for(workspace_id: int, wanted: Wanted) -> AgentPrompt:
    """In use now; for a moment in the past it is enough that it was once."""
    rows = AgentPrompt.objects.in_workspace(workspace_id)
    rows = rows.filter(agent__slug=wanted.agent, channel__slug=wanted.channel)
    if wanted.at is None:
        rows = rows.filter(is_live=True, agent__archived_at=None, channel__archived_at=None)
    prompt = rows.first()
    if prompt is None:
        raise NotThere
    return prompt


def version_now(prompt: AgentPrompt, label: str) -> int:
    if label == LATEST:
        if prompt.latest_id is None:
            raise NoVersion
        return prompt.latest_id
    rows = PromptLabel.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt, name=label)
    found = rows.values_list("version_id", flat=True).first()
    if found is None:
        # Every prompt is to have a production version one day; any other label is simply not there.
        raise NoVersion if label == PRODUCTION else NotThere
    return found


def version_then(prompt: AgentPrompt, wanted: Wanted) -> int:
    """What the label pointed at in that moment."""
    at = wanted.at
    if at is None or at.tzinfo is None or at > timezone.now():
        raise Invalid.on("at", "Name a moment that has passed, with its offset from UTC.")
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
