"""Who calls: a key in the Authorization header, and nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_plus

from django.utils import timezone

from core.db import workspace_scope
from personas.actors import Actor
from personas.api.exception_handler import AUTH_CHALLENGE_HEADERS
from personas.api.problems import FieldError, Problem, ProblemError
from personas.api_keys.format import BOT, is_well_formed_key, key_digest
from personas.api_keys.scopes import WRITE, get_key_verbs, resolve_permissions
from personas.models import ApiKey, Membership, Workspace
from personas.roles import Permission

BEARER_SCHEME = "bearer "
KEY_MARKER = "drm_"


@dataclass(frozen=True)
class ApiClient:
    """A key that holds now, the workspace it belongs to and what it may do there."""

    key: ApiKey
    workspace: Workspace
    actor: Actor
    powers: frozenset[Permission]

    @property
    def is_bot(self) -> bool:
        return self.key.kind == BOT

    @property
    def agents(self) -> list[str] | None:
        """The agents it is limited to, by slug; None without a limit."""
        named: list[str] | None = self.key.scopes.get("agents")
        return named

    def may(self, permission: Permission, *, is_for_bots: bool) -> bool:
        """A bot writes its own things only: through doors that are open to bots, with the verb for it."""
        if not self.is_bot or permission is Permission.READ:
            return permission in self.powers and (is_for_bots or not self.is_bot)
        return is_for_bots and WRITE in get_key_verbs(self.key.scopes, BOT)

    @property
    def is_limited(self) -> bool:
        """Whether it is for some agents, channels or labels only."""
        return bool({"agents", "channels", "labels"} & set(self.key.scopes))

    def may_touch(self, agent_slug: str) -> bool:
        return self.agents is None or agent_slug in self.agents


def authenticate(headers: Mapping[str, str], query: str) -> ApiClient:
    """The caller behind a request; every reason why there is none looks the same."""
    check_no_key_in_url(query)
    secret = parse_key_secret(headers.get("Authorization", ""))
    rows = ApiKey.unscoped.select_related("workspace", "created_by")
    held = rows.filter(digest=key_digest(secret), revoked_at=None, expires_at__gt=timezone.now())
    with workspace_scope.all_workspaces():
        key = held.first()
    if key is None:
        raise invalid_key_error()
    workspace_scope.enter_workspace(key.workspace_id)
    return ApiClient(
        key, key.workspace, get_key_actor(key), resolve_permissions(key, require_creator_role(key))
    )


def require_creator_role(key: ApiKey) -> str:
    """Its maker's role now; a bot's key leans on nobody."""
    if key.kind == BOT or key.created_by is None:
        return ""
    rows = Membership.objects.in_workspace(key.workspace_id)
    role = rows.filter(user=key.created_by, user__is_active=True).values_list("role", flat=True).first()
    if role is None:
        raise invalid_key_error()
    return role


def get_key_actor(key: ApiKey) -> Actor:
    if key.kind == BOT:
        return Actor.bot(key.name)
    return Actor(label=f"{key.created_label} (key {key.name})"[:254], user=key.created_by)


def parse_key_secret(said: str) -> str:
    """What cannot be a key costs no query."""
    secret = get_bearer_token(said)
    if not is_well_formed_key(secret):
        raise invalid_key_error()
    return secret


def get_bearer_token(said: str) -> str:
    """The words after the scheme of an Authorization header; nothing for any other scheme."""
    return said[len(BEARER_SCHEME) :].strip() if said.lower().startswith(BEARER_SCHEME) else ""


def check_no_key_in_url(address: str) -> None:
    """Addresses are logged along the way; whoever puts a key there should change it."""
    if KEY_MARKER in unquote_plus(address):
        said = "Send the key in the Authorization header, never in the address, and replace this one."
        raise ProblemError(Problem(400, "bad_request", said, [FieldError(said, header="Authorization")]))


def invalid_key_error(**more: Any) -> ProblemError:
    return ProblemError(
        Problem(401, "bad_key", "This key is not valid.", headers=AUTH_CHALLENGE_HEADERS, **more)
    )
