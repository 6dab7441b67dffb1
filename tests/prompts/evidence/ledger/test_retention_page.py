"""Workspace settings: how long the ledger is kept."""

import pytest

from personas.models import AuditEvent, Workspace

pytestmark = pytest.mark.django_db


def save(client, workspace, months):
    page = client.post(f"/w/{workspace.slug}/ledger/retention/", {"ledger_months": months}, follow=True)
    workspace.refresh_from_db()
    return page.content.decode()


def test_the_agent_page_links_to_a_page_with_the_setting(as_alice, workspace):
    page = as_alice.get(f"/w/{workspace.slug}/settings/").content.decode()
    assert 'name="ledger_months"' in page
    assert 'value="24"' in page
    assert "Discovered skills" in page


def test_an_owner_changes_it_and_the_audit_log_says_so(as_alice, workspace):
    assert "The ledger is now kept for 36 months." in save(as_alice, workspace, "36")
    assert workspace.ledger_months == 36
    event = AuditEvent.objects.in_workspace(workspace).filter(verb="changed retention").get()
    assert event.after == {"ledger_months": 36}


@pytest.mark.parametrize("months", ["5", "0", "", "x", "99999999999999"])
def test_too_short_or_no_number_is_rejected(as_alice, workspace, months):
    assert "Enter a retention period from 6 to 1,200 months." in save(as_alice, workspace, months)
    assert workspace.ledger_months == 24


def test_an_editor_may_not(as_bob, workspace):
    assert as_bob.post(f"/w/{workspace.slug}/ledger/retention/", {"ledger_months": "36"}).status_code == 403
    assert Workspace.objects.get(pk=workspace.pk).ledger_months == 24
