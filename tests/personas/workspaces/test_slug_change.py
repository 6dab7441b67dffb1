"""The slug of a workspace changes: URLs with the old slug, forms that were open, and keys."""

import pytest

from personas.models import AuditEvent, Soul, Workspace
from personas.workspaces.models import MAX_FORMER_SLUGS
from personas.workspaces.services import change_workspace_slug
from tests.factories import make_soul, make_workspace

pytestmark = pytest.mark.django_db


def change(client, workspace: Workspace, slug: str):
    answer = client.post(f"/w/{workspace.slug}/settings/slug/", {"slug": slug}, follow=True)
    workspace.refresh_from_db()
    return answer.content.decode()


def test_an_owner_changes_it_and_old_links_redirect(as_alice, as_bob, workspace):
    assert "Slug changed to “quay”." in change(as_alice, workspace, "quay")
    assert (workspace.slug, workspace.former_slugs) == ("quay", ["harbour"])
    for client in (as_alice, as_bob):
        answer = client.get("/w/harbour/souls/?q=/w/harbour/&sort=name")
        assert (answer.status_code, answer["Location"]) == (302, "/w/quay/souls/?q=/w/harbour/&sort=name")
        assert client.get("/w/quay/souls/").status_code == 200
    event = AuditEvent.objects.in_workspace(workspace).get(verb="changed settings")
    assert (event.before, event.after) == ({"slug": "harbour"}, {"slug": "quay"})


def test_a_form_that_was_open_is_saved(as_alice, workspace, by_alice):
    soul = make_soul(workspace, text="Be brave.")
    change_workspace_slug(workspace, "quay", by=by_alice)
    values = {"name": "Braver", "text": "Be brave.", "revision": soul.revision}
    answer = as_alice.post(f"/w/harbour/souls/{soul.slug}/edit/", values)
    assert answer.status_code == 302
    assert answer["Location"].startswith("/w/quay/")
    assert Soul.objects.in_workspace(workspace).get().name == "Braver"


def test_outsiders_get_404_for_both(as_mallory, workspace, by_alice):
    change_workspace_slug(workspace, "quay", by=by_alice)
    assert as_mallory.get("/w/harbour/").status_code == 404
    assert as_mallory.get("/w/quay/").status_code == 404


def test_another_workspace_can_use_the_former_slug(as_alice, alice, workspace, by_alice):
    change_workspace_slug(workspace, "quay", by=by_alice)
    other = make_workspace("Harbour", owner=alice)
    assert other.slug == "harbour"
    assert as_alice.get("/w/harbour/").context["workspace"] == other
    assert as_alice.get("/w/quay/").context["workspace"] == workspace


def test_a_slug_of_another_workspace_is_not_revealed(as_alice, workspace, elsewhere):
    change(as_alice, workspace, elsewhere.slug)
    assert workspace.slug.startswith(f"{elsewhere.slug}-")


@pytest.mark.parametrize(
    ("slug", "message"),
    [
        ("new", "“new” is reserved. Choose another slug."),
        ("Not a slug", "Use lowercase letters, digits and single hyphens."),
        ("", "This field is required."),
    ],
)
def test_an_invalid_slug_is_rejected_at_its_field_and_kept(as_alice, workspace, slug, message):
    answer = as_alice.post("/w/harbour/settings/slug/", {"slug": slug})
    form = answer.context["slug_form"]
    assert (answer.status_code, form["slug"].value()) == (422, slug)
    assert message in form.errors["slug"][0]
    # The other form of the page is sent to its own address.
    assert 'action="/w/harbour/settings/"' in answer.content.decode()
    assert f'value="{slug}"' in answer.content.decode() or not slug
    workspace.refresh_from_db()
    assert workspace.slug == "harbour"


def test_going_back_to_a_former_slug_leaves_no_loop(as_alice, workspace):
    for slug in ("quay", "harbour"):
        change(as_alice, workspace, slug)
    assert (workspace.slug, workspace.former_slugs) == ("harbour", ["quay"])
    assert as_alice.get("/w/harbour/").status_code == 200
    assert as_alice.get("/w/quay/")["Location"] == "/w/harbour/"


def test_only_the_last_slugs_are_kept(workspace, by_alice):
    for number in range(MAX_FORMER_SLUGS + 3):
        workspace = change_workspace_slug(workspace, f"quay-{number}", by=by_alice)
    assert len(workspace.former_slugs) == MAX_FORMER_SLUGS


def test_keys_are_not_affected(admin, workspace, by_alice):
    change_workspace_slug(workspace, "quay", by=by_alice)
    answer = admin.get("workspace")
    assert (answer.status_code, answer.json()["slug"]) == (200, "quay")
