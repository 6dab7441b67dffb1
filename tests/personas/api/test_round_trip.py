"""PUT accepts what GET returns, and revisions and audit events have the names and values of the record."""

from typing import Any

import pytest

from personas.models import User, Workspace
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

BODIES: dict[str, dict[str, Any]] = {
    "souls": {"name": "Calm", "text": "Breathe."},
    "identities": {"name": "Fox", "display_name": "Mira"},
    "user-profiles": {"name": "Guest", "display_name": "Gus", "timezone": "UTC"},
    "channels": {"slug": "deck", "name": "Deck"},
    "tools": {"name": "read", "agent": "pilot"},
    "memories": {"text": "Likes tea.", "agent": "pilot", "valid_from": "2026-03-07T14:55:05Z"},
    "responsibilities": {"agent": "pilot", "title": "Watch", "text": "The log."},
    "tasks": {"title": "Sail", "agent": "pilot", "steps": [{"title": "Cast off", "is_done": False}]},
    "skills": {"name": "knots", "description": "Ties knots.", "body": "Tie.", "agents": ["pilot"]},
    "sources": {"name": "House", "kind": "pushed"},
    "agents": {"slug": "mate", "name": "Mate", "soul": "calm", "tools": ["read"], "channels": ["deck"]},
}


@pytest.fixture
def records(admin: Api, workspace: Workspace) -> dict[str, dict[str, Any]]:
    """One record of each kind, by the path of its kind: as GET returns it."""
    make_agent(workspace, "pilot")
    records = {}
    for path, body in BODIES.items():
        created = admin.post(path, body)
        assert created.status_code == 201, created.content
        records[created["Location"].removeprefix("/api/v1/")] = created.json()
    return records


def test_put_accepts_what_get_returns(admin: Api, records: dict[str, dict[str, Any]]) -> None:
    for path, record in records.items():
        put = admin.call("PUT", path, admin.get(path).json(), If_Match=record["etag"])
        assert (put.status_code, put.json()["revision"]) == (200, 1), (path, put.content)


def test_put_names_the_read_only_fields_that_differ(admin: Api, records: dict[str, dict[str, Any]]) -> None:
    for path, record in records.items():
        other = record | {
            "id": 10**6,
            "revision": 9,
            "is_archived": True,
            "created_at": "2026-03-07T14:55:05Z",
        }
        put = admin.call("PUT", path, other, If_Match=record["etag"])
        pointers = [error["pointer"] for error in put.json()["errors"]]
        assert (put.status_code, set(pointers)) == (
            422,
            {"/id", "/revision", "/is_archived", "/created_at"},
        ), path
        assert "read-only" in put.json()["errors"][0]["detail"]
        patch = admin.patch(path, {"id": record["id"]}, record["etag"])
        assert patch.json()["errors"][0]["pointer"] == "/id", path


def test_put_with_an_old_etag_is_a_conflict_and_names_no_field(
    admin: Api, records: dict[str, dict[str, Any]]
) -> None:
    path, record = next(iter(records.items()))
    assert admin.patch(path, {"text": "Other."}, record["etag"]).status_code == 200
    assert admin.call("PUT", path, record, If_Match=record["etag"]).status_code == 412


def test_put_accepts_the_prompt_settings_that_get_returns(admin: Api, workspace: Workspace) -> None:
    url = "prompt-settings/workspace"
    settings = admin.get(url).json()
    put = admin.call("PUT", url, settings | {"mission": "Sail."}, If_Match=settings["etag"])
    assert (put.status_code, put.json()["mission"]) == (200, "Sail."), put.content
    refused = admin.call("PUT", url, put.json() | {"level": "agent"}, If_Match=put["ETag"])
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/level"]


def test_revisions_have_the_names_and_values_of_the_record(
    admin: Api, records: dict[str, dict[str, Any]]
) -> None:
    for path, record in records.items():
        [revision] = admin.get(f"{path}/revisions").json()["items"]
        assert revision["data"].items() <= record.items(), path
        created_only = {"slug", "kind", "message"}
        assert BODIES[path.partition("/")[0]].keys() - created_only <= revision["data"].keys(), path


def test_audit_events_have_the_names_and_values_of_the_record(
    admin: Api, records: dict[str, dict[str, Any]]
) -> None:
    events = {(event["kind"], event["object_id"]): event for event in admin.get("audit").json()["items"]}
    for path, record in records.items():
        kind = {"memories": "memory", "identities": "identity", "responsibilities": "responsibility"}
        name = path.partition("/")[0]
        event = events[kind.get(name, name.removesuffix("s").replace("-", "_")), record["id"]]
        assert event["after"].items() <= record.items(), path


def test_an_archived_record_is_archived_in_the_audit_log(admin: Api, workspace: Workspace) -> None:
    created = admin.post("souls", BODIES["souls"])
    assert admin.call("DELETE", "souls/calm", If_Match=created["ETag"]).status_code == 204
    event = admin.get("audit?limit=1").json()["items"][0]
    assert (event["verb"], event["before"], event["after"]) == (
        "archived",
        {"is_archived": False},
        {"is_archived": True},
    )


def test_a_key_limited_to_an_agent_sees_no_other_agent_in_revisions(
    admin: Api,
    key_for: Any,
    workspace: Workspace,
    alice: User,
) -> None:
    make_agent(workspace, "pilot"), make_agent(workspace, "mate")
    created = admin.post("tasks", {"title": "Sail", "agent": "mate"})
    path = f"tasks/{created.json()['number']}"
    assert admin.patch(path, {"agent": "pilot"}, created["ETag"]).status_code == 200
    narrow = key_for(workspace, alice, agents=["pilot"])
    assert [row["data"]["agent"] for row in narrow.get(f"{path}/revisions").json()["items"]] == [
        "pilot",
        None,
    ]
    assert [row["data"]["agent"] for row in admin.get(f"{path}/revisions").json()["items"]] == [
        "pilot",
        "mate",
    ]
