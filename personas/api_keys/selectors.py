"""Queries for API keys. All are limited to one workspace, except the lookup by digest."""

from dataclasses import dataclass

from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.utils import timezone

from core.db.fast import CompiledQuery
from personas.actors import Actor
from personas.api_keys.descriptions import (
    STATE_LABELS,
    STATE_TONES,
    describe_limits,
    describe_verbs,
    get_key_state,
)
from personas.api_keys.format import ADMIN, BOT
from personas.api_keys.scopes import can_activate_memories, resolve_permissions
from personas.models import AgentChannel, ApiKey, Membership, User, Workspace
from personas.roles import Permission


def filter_valid_keys(digest: str) -> QuerySet[ApiKey]:
    """Return the unexpired, unrevoked key with this digest.

    The query searches all workspaces, because the workspace of an API request is that of its key.
    """
    return ApiKey.unscoped.filter(digest=digest, revoked_at=None, expires_at__gt=timezone.now())


def find_valid_key(digest: str) -> ApiKey | None:
    """Return the key of `filter_valid_keys` with its workspace, its creator and `creator_role`."""
    keys = [key for key in query_unrevoked_keys(digest) if key.expires_at > timezone.now()]
    return keys[0] if keys else None


@CompiledQuery
def query_unrevoked_keys(digest: str) -> QuerySet[ApiKey]:
    """The key with `creator_role`: the role of its creator, if that is an active member of the workspace.

    Compiled, because every request to the API begins with it.
    """
    members = Membership.unscoped.filter(
        workspace=OuterRef("workspace"), user=OuterRef("created_by"), user__is_active=True
    )
    keys = ApiKey.unscoped.filter(digest=digest, revoked_at=None).select_related("workspace", "created_by")
    return keys.annotate(creator_role=Subquery(members.values("role")[:1]))


@dataclass(frozen=True)
class KeySummary:
    """An API key with its state, actions and limits as texts for pages."""

    key: ApiKey
    state: str
    tone: str
    verbs: str
    limits: list[str]
    is_active: bool

    @property
    def is_admin(self) -> bool:
        return self.key.kind == ADMIN

    @property
    def is_trusted_bot(self) -> bool:
        """Whether memories that the bot creates are active without approval."""
        return can_activate_memories(self.key.scopes, self.key.kind)


def list_keys(workspace: Workspace) -> QuerySet[ApiKey]:
    """Return the keys of a workspace with their creators, newest first."""
    return ApiKey.objects.in_workspace(workspace).select_related("created_by").order_by("-created_at", "-pk")


def list_created_keys(key: ApiKey) -> list[ApiKey]:
    """Return the valid keys that were created with this key by the API."""
    return list(filter_active_keys(list_keys(key.workspace).filter(creator_key=key)))


def list_bot_labels(key: ApiKey) -> list[str]:
    """Return the labels under which the bot of this key writes: one per key of its chain of rotations.

    Names of keys are unique in a workspace and never change.
    """
    rows = ApiKey.objects.in_workspace(key.workspace_id).filter(
        Q(pk=key.origin_key_id) | Q(origin=key.origin_key_id), kind=BOT
    )
    return [Actor.bot(name).label for name in rows.values_list("name", flat=True)]


def filter_active_keys(rows: QuerySet[ApiKey]) -> QuerySet[ApiKey]:
    return rows.filter(revoked_at=None, expires_at__gt=timezone.now())


def filter_ended_keys(rows: QuerySet[ApiKey]) -> QuerySet[ApiKey]:
    return rows.filter(Q(revoked_at__isnull=False) | Q(expires_at__lte=timezone.now()))


def build_key_summary(key: ApiKey) -> KeySummary:
    now = timezone.now()
    state = get_key_state(key.expires_at, key.revoked_at, now)
    return KeySummary(
        key=key,
        state=str(STATE_LABELS[state]),
        tone=STATE_TONES[state],
        verbs=describe_verbs(key.scopes, key.kind),
        limits=describe_limits(key.scopes),
        is_active=key.revoked_at is None and key.expires_at > now,
    )


def get_creator_role(key: ApiKey) -> str:
    """Return the current role of a key's creator, or an empty string if that user is not an active member."""
    rows = Membership.objects.in_workspace(key.workspace_id)
    rows = rows.filter(user=key.created_by_id, user__is_active=True)
    return rows.values_list("role", flat=True).first() or ""


def get_key_permissions(key: ApiKey) -> frozenset[Permission]:
    """Return the permissions of a key; those of an admin key depend on the current role of its creator."""
    return resolve_permissions(key, get_creator_role(key) if key.kind == ADMIN else "")


def list_fetchable_prompts(key: ApiKey) -> QuerySet[AgentChannel, tuple[str, str]]:
    """Return the slugs of agent and channel of the prompts within the limits of a key."""
    rows = AgentChannel.objects.in_workspace(key.workspace_id)
    rows = rows.filter(agent__archived_at=None, channel__archived_at=None)
    for name in ("agent", "channel"):
        if slugs := key.scopes.get(f"{name}s"):
            rows = rows.filter(**{f"{name}__slug__in": slugs})
    return rows.order_by("agent__name", "channel__name").values_list("agent__slug", "channel__slug")


def find_example_target(key: ApiKey) -> tuple[str, str]:
    """Return the slugs of an agent and a channel for the usage example of a key.

    The key may fetch the prompt of this agent and channel. The slugs are empty if there is no such pair.
    """
    return list_fetchable_prompts(key).first() or ("", "")


def can_rotate_key(key: ApiKey, user: User) -> bool:
    """Return whether a user may rotate a key.

    Only its creator may rotate an admin key, because rotation reveals a secret that acts for the creator.
    """
    return key.kind != ADMIN or key.created_by_id == user.pk


def list_key_labels(workspace: Workspace | int, user: User) -> set[str]:
    """Return the labels of changes made with keys for which a user is responsible, also after they ended.

    These are the keys that the user created or got by rotating another, and those that replaced them.
    """
    keys = ApiKey.objects.in_workspace(workspace)
    first: dict[int, int] = {}
    for key in keys.filter(created_by=user).order_by("-pk"):
        first[key.origin_key_id] = key.pk
    chains = keys.filter(Q(pk__in=first) | Q(origin__in=first))
    return {key.actor_label for key in chains if key.pk >= first[key.origin_key_id]}
