"""The gate: keys, budgets, problems outside of views."""

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
from personas.erasure.services import erase_record_text
from personas.errors import DomainError
from personas.members.services import change_role, remove_member
from personas.models import ApiKey, Membership, Memory, User, Workspace
from personas.roles import Role
from project.api.docs_views import PROBLEM_ADVICE
from tests.api_client import Api
from tests.factories import make_agent
from tests.shared_workspaces import (  # noqa: F401  # fixtures
    housed_alice,
    housed_bob,
    housed_elsewhere,
    housed_mallory,
    housed_workspace,
    the_house,
)

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("said", ["", "Bearer", "Bearer x", "Basic YTpi", "Bearer drm_bot_" + "a" * 36])
def test_what_cannot_be_a_key_costs_no_query(
    said: str, client: Client, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(0):
        answer = client.get("/api/v1/souls", headers={"Authorization": said} if said else {})
    assert (answer.status_code, answer.json()["code"]) == (401, "bad_key")
    assert answer["WWW-Authenticate"].startswith("Bearer")


def test_every_reason_to_refuse_a_key_looks_alike(admin: Api, workspace: Workspace, alice: User) -> None:
    rows = ApiKey.objects.in_workspace(workspace)
    unknown = Api(generate_key_secret(ADMIN), admin.client).get("souls").json()
    rows.update(expires_at=timezone.now() - timedelta(seconds=1))
    expired = admin.get("souls").json()
    rows.update(expires_at=timezone.now() + timedelta(days=1))
    assert admin.get("souls").status_code == 200
    revoke_key(rows.get(), by=Actor.person(alice))
    revoked = admin.get("souls").json()
    for said in (unknown, expired, revoked):
        del said["request_id"]
    assert unknown == expired == revoked
    assert unknown["status"] == 401


def test_a_cookie_is_no_key(as_alice: Client) -> None:
    assert as_alice.get("/api/v1/souls").status_code == 401


def test_an_admin_key_may_what_its_maker_may_now(
    key_for: Any, workspace: Workspace, alice: User, bob: User
) -> None:
    api = key_for(workspace, bob)
    membership = Membership.objects.in_workspace(workspace).get(user=bob)
    assert api.post("souls", {"label": "Calm"}).status_code == 201
    change_role(membership, Role.VIEWER, by=Actor.person(alice))
    assert api.post("souls", {"label": "Wild"}).json()["code"] == "out_of_scope"
    assert api.get("souls").status_code == 200
    remove_member(membership, by=Actor.person(alice))
    assert api.get("souls").status_code == 401


def test_a_budget_runs_out_and_fills_again(admin: Api, settings: Any) -> None:
    settings.DRAMATIS_RATE_LIMITS = {"read": (2, 100), "write": (9, 9)}
    first = admin.get("souls")
    assert first["RateLimit-Policy"] == '"read";q=2;w=60'
    assert first["RateLimit"] == '"read";r=1;t=30'
    assert admin.get("souls").status_code == 200
    refused = admin.get("souls")
    assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
    assert int(refused["Retry-After"]) in range(25, 31)
    assert admin.post("souls", {"label": "Calm"}).status_code == 201


def test_a_workspace_has_a_budget_of_its_own(settings: Any) -> None:
    settings.DRAMATIS_RATE_LIMITS = {"read": (10, 3)}
    now = [0.0]
    buckets = RateLimiter(lambda: now[0])
    for key in (1, 2, 3):
        rate_limits.charge_rate_limit(key, 7, "read", limiter=buckets)
    with pytest.raises(ProblemError):
        rate_limits.charge_rate_limit(4, 7, "read", limiter=buckets)
    now[0] += 20
    rate_limits.charge_rate_limit(4, 7, "read", limiter=buckets)
    rate_limits.charge_rate_limit(4, 8, "read", limiter=buckets)


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "nowhere", 404), ("DELETE", "souls", 405)])
def test_errors_of_the_framework_are_problems_too(admin: Api, method: str, path: str, status: int) -> None:
    answer = admin.call(method, path)
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json")
    assert answer.json()["request_id"] == answer["X-Request-ID"]


def test_a_405_says_what_is_allowed(admin: Api) -> None:
    assert admin.call("DELETE", "souls")["Allow"] == "GET, POST, HEAD"


def test_a_fault_of_ours_says_no_more_than_that(admin: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object) -> None:
        raise RuntimeError("a path: /etc/secret")

    monkeypatch.setattr("personas.api.record_resource.paginate_rows", broken)
    answer = admin.get("souls")
    assert (answer.status_code, answer.json()["code"]) == (500, "server_error")
    assert b"secret" not in answer.content


def test_the_schema_is_for_everybody(client: Client) -> None:
    said = client.get("/api/v1/openapi.json").json()
    assert said["openapi"] == "3.1.0"
    ids = [
        method["operationId"]
        for item in said["paths"].values()
        for method in item.values()
        if isinstance(method, dict)
    ]
    assert len(ids) == len(set(ids))


def test_every_refusal_has_its_words() -> None:
    """A code that the document does not know would be a violation of it."""
    kinds, found = [DomainError], set()
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        found.add(kind.code)
    assert found - set(PROBLEM_TITLES) == set()
    assert set(PROBLEM_TITLES) == set(PROBLEM_ADVICE)


def test_nobody_makes_a_key_that_may_more_than_his_own(
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


def test_a_stranger_is_refused_before_a_body_is_read(client: Client) -> None:
    """However it was made to hurt: what strangers send is not looked at."""
    for path in ("agents/mira/prompt:render", "prompts:batchGet"):
        answer = client.post(
            f"/api/v1/{path}",
            b"[" * 900_000,
            content_type="application/json",
            headers={"Authorization": f"Bearer {generate_key_secret()}"},
        )
        assert (answer.status_code, answer.json()["code"]) == (401, "bad_key")


def test_refused_fetches_are_paid_for(key_for: Any, workspace: Workspace, alice: User, settings: Any) -> None:
    settings.DRAMATIS_RATE_LIMITS = {"fetch": (2, 100)}
    bot = key_for(workspace, alice, "bot")
    codes = [bot.get("agents/mira/prompt?channel=web").status_code for _ in range(3)]
    assert codes == [404, 404, 429]


def test_a_key_does_not_outlive_the_one_that_made_it(admin: Api, workspace: Workspace) -> None:
    soon = timezone.now() + timedelta(hours=1)
    ApiKey.objects.in_workspace(workspace).update(expires_at=soon)
    made = admin.post("keys", {"name": "Heir"}).json()
    assert ApiKey.objects.in_workspace(workspace).get(pk=made["id"]).expires_at == soon


def test_a_retry_of_another_key_is_another_call(
    admin: Api, key_for: Any, workspace: Workspace, bob: User
) -> None:
    other = key_for(workspace, bob)
    first = admin.post("souls", {"label": "Calm"}, Idempotency_Key="one").json()
    second = other.post("souls", {"label": "Calm"}, Idempotency_Key="one").json()
    assert first["slug"] != second["slug"]


def test_erased_words_are_not_kept_for_retries(admin: Api, workspace: Workspace, alice: User) -> None:
    made = admin.post("memories", {"text": "Was born in Bergen."}, Idempotency_Key="one").json()
    erase_record_text(
        Memory.objects.in_workspace(workspace).get(pk=made["id"]), reason="Asked", by=Actor.person(alice)
    )
    again = admin.post("memories", {"text": "Was born in Bergen."}, Idempotency_Key="one").json()
    assert again["id"] != made["id"]


def test_a_key_of_one_agent_cannot_give_a_memory_back_to_another(
    admin: Api, key_for: Any, workspace: Workspace, alice: User
) -> None:
    for slug in ("mira", "nils"):
        make_agent(workspace, slug=slug)
    made = admin.post("memories", {"text": "Likes tea.", "agent": "nils"})
    moved = admin.patch(f"memories/{made.json()['id']}", {"agent": "mira"}, made["ETag"])
    narrow = key_for(workspace, alice, agents=["mira"])
    back = narrow.call("POST", f"memories/{made.json()['id']}/revisions/1:restore", If_Match=moved["ETag"])
    assert (back.status_code, back.json()["code"]) == (403, "out_of_scope")
