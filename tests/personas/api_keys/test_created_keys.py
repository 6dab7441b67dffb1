"""Keys that the API creates: their default verbs, and their revocation with the key that created them."""

from typing import Any

import pytest

from personas.api_keys import services
from personas.models import ApiKey, AuditEvent

pytestmark = pytest.mark.django_db
BODIES: list[dict[str, Any]] = [{}, {"scopes": {}}]


def create(api, name, **body):
    response = api.post("keys", {"name": name, **body})
    assert response.status_code == 201, response.json()
    return response.json()


def with_secret(api, secret):
    return type(api)(secret, api.client)


def list_valid(workspace):
    return set(ApiKey.objects.in_workspace(workspace).filter(revoked_at=None).values_list("name", flat=True))


def get_first_key(workspace):
    return ApiKey.objects.in_workspace(workspace).order_by("pk")[0]


@pytest.fixture
def chain(key_for, workspace, alice):
    """An admin key, a key created with it, and one created with that."""
    root = key_for(workspace, alice)
    child = create(root, "Child", kind="admin", scopes={"verbs": ["fetch", "manage"]})
    create(with_secret(root, child["secret"]), "Grandchild", scopes={"verbs": ["fetch"]})
    create(root, "Sibling", scopes={"verbs": ["fetch"]})
    return root, child


def test_a_key_without_verbs_may_fetch_and_render(admin):
    for number, body in enumerate(BODIES):
        assert create(admin, f"Bot {number}", **body)["scopes"] == {"verbs": ["fetch", "render"]}


def test_default_verbs_are_not_wider_than_the_key_that_creates(key_for, workspace, alice):
    limited = key_for(workspace, alice, verbs=["fetch", "manage"])
    assert create(limited, "Bot")["scopes"] == {"verbs": ["fetch"]}
    manager = key_for(workspace, alice, verbs=["manage"])
    refused = manager.post("keys", {"name": "Other"})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/scopes/verbs")


def test_a_key_is_revoked_with_the_keys_that_were_created_with_it(chain, workspace, admin):
    root, child = chain
    assert child["creator_key_id"] == get_first_key(workspace).pk
    assert admin.post(f"keys/{child['id']}:revoke?with_created=true").status_code == 204
    assert {"Child", "Grandchild"} & list_valid(workspace) == set()
    assert "Sibling" in list_valid(workspace)
    assert with_secret(root, child["secret"]).get("keys").status_code == 401
    events = AuditEvent.objects.in_workspace(workspace).filter(verb="revoked", kind="key")
    assert sorted(events.values_list("object_label", flat=True)) == ["Child", "Grandchild"]


def test_otherwise_the_keys_that_were_created_with_it_go_on(chain, workspace, admin):
    _, child = chain
    admin.post(f"keys/{child['id']}:revoke")
    assert "Grandchild" in list_valid(workspace)


def test_a_key_that_was_revoked_before_still_leads_to_those_it_created(chain, workspace, admin):
    _, child = chain
    for query in ("", "?with_created=true"):
        admin.post(f"keys/{child['id']}:revoke{query}")
    assert "Grandchild" not in list_valid(workspace)


def test_the_successor_of_a_stolen_key_is_revoked_with_it(chain, workspace, admin):
    root, child = chain
    thief = with_secret(root, child["secret"])
    assert thief.post(f"keys/{child['id']}:rotate", {}).status_code == 201
    admin.post(f"keys/{child['id']}:revoke?with_created=true")
    assert not {name for name in list_valid(workspace) if name.startswith("Child")}


def test_keys_are_revoked_in_turn(chain, workspace, admin):
    root = get_first_key(workspace)
    admin.post(f"keys/{root.pk}:revoke?with_created=true")
    assert list_valid(workspace) & {"Child", "Grandchild", "Sibling"} == set()


def test_a_search_that_stops_at_the_first_generation_is_detected(chain, workspace, admin, monkeypatch):
    def revoke_direct(key, *, by):
        rows = ApiKey.objects.in_workspace(workspace).filter(creator_key=key)
        return [services.revoke_key(row, by=by) for row in (key, *rows)]

    monkeypatch.setattr("personas.api_keys.api.revoke_key_with_created", revoke_direct)
    with pytest.raises(AssertionError):
        test_keys_are_revoked_in_turn(chain, workspace, admin)


def test_the_page_offers_to_revoke_them_too(chain, workspace, as_alice):
    root = get_first_key(workspace)
    url = f"/w/{workspace.slug}/keys/{root.pk}/revoke/"
    page = as_alice.get(url).content.decode()
    assert "Also revoke 2 keys that were created with this key through the API" in page
    assert "Sibling" in page
    as_alice.post(url, {"with_created": "on"})
    assert list_valid(workspace) == set()
