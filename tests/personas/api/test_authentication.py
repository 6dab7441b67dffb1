"""Authentication, rate limits, and problems that occur outside of views."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from personas.actors import Actor
from personas.api import rate_limits
from personas.api.problems import PROBLEM_TITLES, ProblemError
from personas.api.rate_limits import RateLimiter
from personas.api_keys.format import ADMIN, generate_key_secret
from personas.api_keys.services import revoke_key
from personas.errors import DomainError
from personas.members.services import change_role, remove_member
from personas.models import ApiKey, Membership, User, Workspace
from personas.roles import Role
from project.api.docs_views import PROBLEM_ADVICE
from tests.api_client import Api
from tests.factories import make_agent
from tests.shared_cast import (  # noqa: F401  # fixtures
    shared_alice,
    shared_as_alice,
    shared_as_bob,
    shared_as_mallory,
    shared_bob,
    shared_cast,
    shared_elsewhere,
    shared_mallory,
    shared_workspace,
)

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer x", "Basic YTpi", "Bearer drm_bot_" + "a" * 36])
def test_a_malformed_key_costs_no_query(header: str, client: Client, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        answer = client.get("/api/v1/souls", headers={"Authorization": header} if header else {})
    assert (answer.status_code, answer.json()["code"]) == (401, "invalid_key")
    assert answer["WWW-Authenticate"].startswith("Bearer")


def test_all_rejected_keys_get_the_same_response(admin: Api, workspace: Workspace, alice: User) -> None:
    rows = ApiKey.objects.in_workspace(workspace)
    unknown = Api(generate_key_secret(ADMIN), admin.client).get("souls").json()
    rows.update(expires_at=timezone.now() - timedelta(seconds=1))
    expired = admin.get("souls").json()
    rows.update(expires_at=timezone.now() + timedelta(days=1))
    assert admin.get("souls").status_code == 200
    revoke_key(rows.get(), by=Actor.person(alice))
    revoked = admin.get("souls").json()
    for body in (unknown, expired, revoked):
        del body["request_id"]
    assert unknown == expired == revoked
    assert unknown["status"] == 401


def test_a_cookie_is_no_key(as_alice: Client) -> None:
    assert as_alice.get("/api/v1/souls").status_code == 401


def test_an_admin_key_has_the_current_role_of_its_creator(
    key_for: Any, workspace: Workspace, alice: User, bob: User
) -> None:
    api = key_for(workspace, bob)
    membership = Membership.objects.in_workspace(workspace).get(user=bob)
    assert api.post("souls", {"name": "Calm"}).status_code == 201
    change_role(membership, Role.VIEWER, by=Actor.person(alice))
    assert api.post("souls", {"name": "Wild"}).json()["code"] == "out_of_scope"
    assert api.get("souls").status_code == 200
    remove_member(membership, by=Actor.person(alice))
    assert api.get("souls").status_code == 401


def test_a_rate_limit_budget_runs_out_and_refills(
    admin: Api, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.DRAMATIS_RATE_LIMITS = {"read": (2, 100), "write": (9, 9)}
    now = [100.0]
    monkeypatch.setattr(rate_limits.PROCESS_LIMITER, "_clock", lambda: now[0])
    first = admin.get("souls")
    assert first["RateLimit-Policy"] == '"read";q=2;w=60'
    assert first["RateLimit"] == '"read";r=1;t=30'
    last = admin.get("souls")
    assert (last.status_code, last["RateLimit"]) == (200, '"read";r=0;t=30')
    now[0] += 3
    refused = admin.get("souls")
    assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
    assert (refused["Retry-After"], refused["RateLimit"]) == ("27", '"read";r=0;t=27')
    assert admin.post("souls", {"name": "Calm"}).status_code == 201
    now[0] += 27
    assert admin.get("souls").status_code == 200


def test_a_workspace_has_its_own_rate_limit_budget(settings: Any) -> None:
    settings.DRAMATIS_RATE_LIMITS = {"read": (10, 3)}
    now = [0.0]
    limiter = RateLimiter(lambda: now[0])
    for key in (1, 2, 3):
        rate_limits.charge_rate_limit(key, 7, "read", limiter=limiter)
    with pytest.raises(ProblemError):
        rate_limits.charge_rate_limit(4, 7, "read", limiter=limiter)
    now[0] += 20
    rate_limits.charge_rate_limit(4, 7, "read", limiter=limiter)
    rate_limits.charge_rate_limit(4, 8, "read", limiter=limiter)


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "nowhere", 404), ("DELETE", "souls", 405)])
def test_errors_of_the_framework_are_problems_too(admin: Api, method: str, path: str, status: int) -> None:
    answer = admin.call(method, path)
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json")
    assert answer.json()["request_id"] == answer["X-Request-ID"]


@pytest.mark.parametrize("path", ["//api/v1/agents", "/.well-known/openid-configuration", "/api/v1", "*"])
def test_paths_that_only_programs_request_are_problems_too(client: Client, path: str) -> None:
    answer = client.generic("OPTIONS" if path == "*" else "GET", "/", PATH_INFO=path)
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")


def test_a_405_says_what_is_allowed(admin: Api) -> None:
    assert admin.call("DELETE", "souls")["Allow"] == "GET, POST, HEAD"


def test_a_server_error_reveals_no_details(admin: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object) -> None:
        raise RuntimeError("a path: /etc/secret")

    monkeypatch.setattr("personas.api.record_resource.paginate_rows", broken)
    answer = admin.get("souls")
    assert (answer.status_code, answer.json()["code"]) == (500, "server_error")
    assert b"secret" not in answer.content


def test_the_schema_is_for_everybody(client: Client) -> None:
    document = client.get("/api/v1/openapi.json").json()
    assert document["openapi"] == "3.1.0"
    ids = [
        method["operationId"]
        for item in document["paths"].values()
        for method in item.values()
        if isinstance(method, dict)
    ]
    assert len(ids) == len(set(ids))


def test_the_schema_is_revalidated_and_compressed(client: Client) -> None:
    first = client.get("/api/v1/openapi.json", headers={"Accept-Encoding": "gzip"})
    assert first["Content-Encoding"] == "gzip"
    again = client.get("/api/v1/openapi.json", headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])


def test_every_problem_code_has_a_title_and_advice() -> None:
    """Every error code must have a title and advice in the documentation."""
    kinds, codes = [DomainError], set()
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        codes.add(kind.code)
    assert codes - set(PROBLEM_TITLES) == set()
    assert set(PROBLEM_TITLES) == set(PROBLEM_ADVICE)


def test_a_key_cannot_create_a_key_with_wider_scopes(
    key_for: Any, workspace: Workspace, alice: User, admin: Api
) -> None:
    make_agent(workspace, slug="mira")
    manager = key_for(workspace, alice, verbs=["read", "manage"], agents=["mira"])
    assert manager.post("keys", {"name": "A", "scopes": {"agents": ["mira"]}}).status_code == 422
    wide = manager.post("keys", {"name": "B", "scopes": {"verbs": ["read"]}}).json()
    assert wide["errors"][0]["pointer"] == "/scopes/agents"
    good = manager.post("keys", {"name": "C", "scopes": {"verbs": ["read"], "agents": ["mira"]}})
    assert good.status_code == 201
    mine = admin.post("keys", {"name": "D"}).json()["id"]
    for verb in ("rotate", "revoke"):
        assert manager.post(f"keys/{mine}:{verb}", {}).status_code == 404


def test_an_unauthenticated_request_is_rejected_before_the_body_is_parsed(client: Client) -> None:
    """The body of an unauthenticated request is not parsed."""
    for path in ("agents/mira/channels/web/prompt:render", "prompts:batchGet"):
        answer = client.post(
            f"/api/v1/{path}",
            b"[" * 900_000,
            content_type="application/json",
            headers={"Authorization": f"Bearer {generate_key_secret()}"},
        )
        assert (answer.status_code, answer.json()["code"]) == (401, "invalid_key")


def test_failed_fetches_count_towards_the_rate_limit(
    key_for: Any, workspace: Workspace, alice: User, settings: Any
) -> None:
    settings.DRAMATIS_RATE_LIMITS = {"fetch": (2, 100)}
    bot = key_for(workspace, alice, "bot")
    codes = [bot.get("agents/mira/channels/web/prompt").status_code for _ in range(3)]
    assert codes == [404, 404, 429]


def test_a_key_does_not_outlive_the_key_that_created_it(admin: Api, workspace: Workspace) -> None:
    soon = timezone.now() + timedelta(hours=1)
    ApiKey.objects.in_workspace(workspace).update(expires_at=soon)
    key = admin.post("keys", {"name": "Heir"}).json()
    assert ApiKey.objects.in_workspace(workspace).get(pk=key["id"]).expires_at == soon


def test_idempotency_keys_belong_to_one_api_key(
    admin: Api, key_for: Any, workspace: Workspace, bob: User
) -> None:
    other = key_for(workspace, bob)
    first = admin.post("souls", {"name": "Calm"}, Idempotency_Key="one").json()
    second = other.post("souls", {"name": "Calm"}, Idempotency_Key="one").json()
    assert first["slug"] != second["slug"]


def test_a_key_of_one_agent_cannot_give_a_memory_back_to_another(
    admin: Api, key_for: Any, workspace: Workspace, alice: User
) -> None:
    for slug in ("mira", "nils"):
        make_agent(workspace, slug=slug)
    created = admin.post("memories", {"text": "Likes tea.", "agent": "nils"})
    moved = admin.patch(f"memories/{created.json()['id']}", {"agent": "mira"}, created["ETag"])
    narrow = key_for(workspace, alice, agents=["mira"])
    back = narrow.call("POST", f"memories/{created.json()['id']}/revisions/1:restore", If_Match=moved["ETag"])
    assert (back.status_code, back.json()["code"]) == (403, "out_of_scope")
