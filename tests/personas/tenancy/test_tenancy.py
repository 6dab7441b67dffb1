"""Tenancy middleware: access to workspaces, and the timezone of members."""

from datetime import UTC, datetime

from django.utils import timezone

from tests.factories import make_memory, make_soul


def test_users_outside_the_workspace_get_the_same_404_as_for_a_missing_one(workspace, as_mallory):
    assert as_mallory.get(f"/w/{workspace.slug}/").status_code == 404
    assert as_mallory.get("/w/nowhere/").status_code == 404


def test_anonymous_users_are_redirected_to_sign_in(workspace, client):
    for slug in (workspace.slug, "nowhere"):
        answer = client.get(f"/w/{slug}/souls/")
        assert answer.status_code == 302
        assert answer["Location"].startswith("/accounts/login/")


def test_a_superuser_who_is_no_member_has_no_access(workspace, as_mallory, mallory):
    mallory.is_superuser = mallory.is_staff = True
    mallory.save()
    assert as_mallory.get(f"/w/{workspace.slug}/").status_code == 404


def test_a_view_without_a_permission_accepts_no_writes(workspace, as_alice):
    assert as_alice.post(f"/w/{workspace.slug}/audit/").status_code == 405
    assert as_alice.delete(f"/w/{workspace.slug}/souls/").status_code == 405


def test_a_user_with_one_workspace_is_redirected_to_it(workspace, as_bob):
    assert as_bob.get("/")["Location"] == f"/w/{workspace.slug}/"


def test_times_are_displayed_in_the_members_timezone(workspace, as_bob, bob):
    bob.timezone = "Asia/Tokyo"
    bob.save()
    memory = make_memory(workspace, valid_until=datetime(2026, 12, 31, 20, 0, tzinfo=UTC))
    page = as_bob.get(f"/w/{workspace.slug}/memories/{memory.pk}/").content.decode()
    assert "1 Jan 2027, 05:00 JST" in page
    assert timezone.get_current_timezone_name() == "UTC"


def test_times_are_parsed_in_the_members_timezone(workspace, as_bob, bob):
    bob.timezone = "Asia/Tokyo"
    bob.save()
    fields = {"text": "T", "status": "active", "valid_until": "2027-01-01T05:00"}
    assert as_bob.post(f"/w/{workspace.slug}/memories/new/", fields).status_code == 302
    memory = make_memory(workspace, "Other")
    first = type(memory).objects.in_workspace(workspace).earliest("pk")
    assert first.valid_until == datetime(2026, 12, 31, 20, 0, tzinfo=UTC)


def test_a_foreign_record_and_a_missing_one_look_the_same(workspace, elsewhere, as_bob):
    foreign = make_soul(elsewhere, "Secret")
    for slug in (foreign.slug, "nothing-here"):
        for page in ("", "edit/", "history/"):
            assert as_bob.get(f"/w/{workspace.slug}/souls/{slug}/{page}").status_code == 404
