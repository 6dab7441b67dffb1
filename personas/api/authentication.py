"""Authentication of API clients: a bearer key in the Authorization header, and nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote_plus

from core.db import workspace_scope
from personas.actors import Actor
from personas.api.exception_handler import AUTH_CHALLENGE_HEADERS, INVALID_KEY_HEADERS
from personas.api.problems import FieldError, Problem, ProblemError
from personas.api_keys.format import BOT, is_well_formed_key, key_digest
from personas.api_keys.scopes import WRITE, can_activate_memories, get_key_verbs, resolve_permissions
from personas.api_keys.selectors import find_valid_key
from personas.models import ApiKey, Workspace
from personas.roles import Permission

BEARER_SCHEME = "bearer "
KEY_MARKER = "drm_"
INVALID_KEY_DETAIL = "This key is not valid: it is unknown, expired or revoked."


@dataclass(frozen=True)
class ApiClient:
    """An authenticated API client: a valid API key, the key's workspace and the key's permissions."""

    key: ApiKey
    workspace: Workspace
    actor: Actor
    permissions: frozenset[Permission]

    @property
    def is_bot(self) -> bool:
        return self.key.kind == BOT

    @property
    def agents(self) -> list[str] | None:
        """Slugs of the agents that the key is limited to. None if the key may access all agents."""
        slugs: list[str] | None = self.key.scopes.get("agents")
        return slugs

    def has_permission(self, permission: Permission, *, is_for_bots: bool) -> bool:
        """Return whether the client may run an operation that needs this permission.

        A bot may run only operations with `is_for_bots`. To change data, its key also needs the verb `write`.
        """
        if not self.is_bot or permission is Permission.READ:
            return permission in self.permissions and (is_for_bots or not self.is_bot)
        return is_for_bots and WRITE in get_key_verbs(self.key.scopes, BOT)

    @property
    def is_limited(self) -> bool:
        """Whether the key is limited to some agents, channels or labels."""
        return bool({"agents", "channels", "labels"} & set(self.key.scopes))

    def can_access_agent(self, agent_slug: str) -> bool:
        return self.agents is None or agent_slug in self.agents


def authenticate(headers: Mapping[str, str], query: str) -> ApiClient:
    """Return the client that sent a request. Raise a 401 problem if the request has no valid key.

    The 401 response is the same for every invalid key, so it does not reveal which keys exist.
    """
    check_no_key_in_url(query)
    secret = parse_key_secret(headers.get("Authorization", ""))
    with workspace_scope.all_workspaces():
        key = find_valid_key(key_digest(secret))
    if key is None:
        raise invalid_key_error()
    workspace_scope.enter_workspace(key.workspace_id)
    permissions = resolve_permissions(key, require_creator_role(key))
    return ApiClient(key, key.workspace, get_key_actor(key, permissions), permissions)


def require_creator_role(key: ApiKey) -> str:
    """Return the current role of the key's creator. Raise a 401 problem if that user is not an active member.

    For a bot key, return an empty string: it belongs to the workspace, so its creator does not matter.
    """
    if key.kind == BOT or key.created_by is None:
        return ""
    role: str | None = vars(key)["creator_role"]
    if role is None:
        raise invalid_key_error()
    return role


def get_key_actor(key: ApiKey, permissions: frozenset[Permission]) -> Actor:
    if key.kind == BOT:
        return Actor.bot(key.name, can_activate_memories=can_activate_memories(key.scopes, key.kind))
    return Actor(label=key.actor_label, user=key.created_by, has_key=True, permissions=permissions)


def parse_key_secret(header: str) -> str:
    """Return the API key in an Authorization header. Reject a malformed key without a database query."""
    secret = get_bearer_token(header)
    if not secret:
        raise missing_key_error()
    if not is_well_formed_key(secret):
        raise invalid_key_error()
    return secret


def get_bearer_token(header: str) -> str:
    """Return the token of a Bearer Authorization header, or an empty string for any other scheme."""
    return header[len(BEARER_SCHEME) :].strip() if header.lower().startswith(BEARER_SCHEME) else ""


def check_no_key_in_url(query: str) -> None:
    """Reject a request with an API key in its URL. Proxies log URLs, so the client must replace that key."""
    if KEY_MARKER in unquote_plus(query):
        detail = (
            "Send the key in the Authorization header, never in the URL. This key may have been "
            "logged: revoke it and create a new one."
        )
        raise ProblemError(Problem(400, "bad_request", detail, [FieldError(detail, header="Authorization")]))


def missing_key_error() -> ProblemError:
    detail = "Send a key in the header “Authorization: Bearer drm_…”."
    errors = [FieldError(detail, header="Authorization")]
    return ProblemError(Problem(401, "invalid_key", detail, errors, AUTH_CHALLENGE_HEADERS))


def invalid_key_error() -> ProblemError:
    return ProblemError(Problem(401, "invalid_key", INVALID_KEY_DETAIL, headers=INVALID_KEY_HEADERS))
