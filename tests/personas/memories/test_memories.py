"""Memory services and pages: propose, approve, supersede, revoke, reinstate."""

from datetime import UTC, datetime, timedelta, timezone
from itertools import product

import pytest
from django.test import Client

from personas.actors import Actor
from personas.api_keys.format import ADMIN
from personas.api_keys.services import create_key
from personas.errors import DomainError, InvalidInput
from personas.memories.services import (
    approve_memory,
    create_memory,
    reinstate_memory,
    revoke_memory,
    supersede_memory,
)
from personas.models import AuditEvent, Memory, MemoryStatus
from personas.records.services import restore_revision
from personas.roles import Role
from tests.api_client import Api
from tests.factories import join, make_agent, make_memory, make_user, signed_in
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


def test_a_memory_from_a_bot_is_proposed(workspace):
    memory = make_memory(workspace, by=Actor.bot("scout"), status=MemoryStatus.ACTIVE)
    assert (memory.status, memory.author, memory.author_label) == (MemoryStatus.PROPOSED, None, "bot:scout")


def test_a_memory_from_a_member_is_active_and_names_its_author(workspace, by_alice):
    memory = make_memory(workspace, by=by_alice)
    assert (memory.status, memory.author) == (MemoryStatus.ACTIVE, by_alice.user)


def test_an_approved_memory_is_active_and_cannot_be_approved_twice(workspace, by_alice):
    memory = approve_memory(make_memory(workspace, by=Actor.bot("scout")), by=by_alice)
    assert memory.status == MemoryStatus.ACTIVE
    with pytest.raises(DomainError, match="Only proposed memories"):
        approve_memory(memory, by=by_alice)


def test_a_superseded_memory_names_its_successor(workspace, by_alice):
    old, new = make_memory(workspace, "Tea at four."), make_memory(workspace, "Tea at five.")
    old = supersede_memory(old, new, by=by_alice)
    assert (old.status, old.superseded_by) == (MemoryStatus.SUPERSEDED, new)


def test_a_memory_is_superseded_only_by_another_active_memory(workspace, by_alice):
    memory, proposed = make_memory(workspace), make_memory(workspace, "Maybe.", by=Actor.bot("scout"))
    with pytest.raises(DomainError, match="cannot replace itself"):
        supersede_memory(memory, memory, by=by_alice)
    with pytest.raises(DomainError, match="Only an active memory"):
        supersede_memory(memory, proposed, by=by_alice)


def test_a_revoked_memory_is_archived_until_it_is_reinstated(workspace, by_alice):
    memory = revoke_memory(make_memory(workspace), by=by_alice)
    assert (memory.status, memory.is_archived) == (MemoryStatus.REVOKED, True)
    memory = reinstate_memory(memory, by=by_alice)
    assert (memory.status, memory.is_archived, memory.superseded_by) == (MemoryStatus.ACTIVE, False, None)


def test_a_memory_must_end_after_it_begins(workspace):
    spring, autumn = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 9, 1, tzinfo=UTC)
    with pytest.raises(InvalidInput, match="must come after"):
        make_memory(workspace, valid_from=autumn, valid_until=spring)


def test_a_shared_memory_affects_every_active_agent_and_an_own_one_only_its_agent(workspace):
    first, second = make_agent(workspace), make_agent(workspace)
    assert make_memory(workspace).agent_ids() == [first.pk, second.pk]
    assert make_memory(workspace, agent=second).agent_ids() == [second.pk]


def test_a_reviewer_approves_on_the_page_and_an_editor_may_not(workspace, as_bob):
    memory = make_memory(workspace, by=Actor.bot("scout"))
    rita = make_user("Rita")
    join(workspace, rita, Role.REVIEWER)
    url = f"/w/{workspace.slug}/memories/{memory.pk}/approve/"
    assert as_bob.post(url).status_code == 403
    assert signed_in(rita).post(url).status_code == 302
    memory.refresh_from_db()
    assert memory.status == MemoryStatus.ACTIVE
    assert AuditEvent.objects.in_workspace(workspace).latest("pk").actor_label == rita.email


def test_the_list_shows_one_status_at_a_time(workspace, as_bob, by_alice):
    make_memory(workspace, "Kept.")
    revoke_memory(make_memory(workspace, "Gone."), by=by_alice)
    page = as_bob.get(f"/w/{workspace.slug}/memories/").content.decode()
    assert "Kept." in page
    assert "Gone." not in page
    assert "Gone." in as_bob.get(f"/w/{workspace.slug}/memories/?status=revoked").content.decode()


def test_the_audit_log_names_each_action(workspace, by_alice):
    memory = make_memory(workspace, by=Actor.bot("scout"))
    approve_memory(memory, by=by_alice)
    revoke_memory(memory, by=by_alice)
    reinstate_memory(memory, by=by_alice)
    supersede_memory(memory, make_memory(workspace, "Newer."), by=by_alice)
    events = AuditEvent.objects.in_workspace(workspace).filter(kind="memory", object_id=memory.pk)
    verbs = list(events.order_by("pk").values_list("verb", flat=True))
    assert verbs == ["created", "approved", "revoked", "reinstated", "superseded"]


@pytest.mark.slow
def test_a_timestamp_that_overflows_in_some_timezone_is_refused(workspace, as_bob, bob):
    """Such a row would make the board fail for users in that timezone."""
    timestamps = ["0001-01-01T00:00", "0999-12-31T23:59", "9999-12-31T23:59"]
    for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago"):
        bob.timezone = zone
        bob.save()
        for name, timestamp in product(["valid_from", "valid_until"], timestamps):
            data = {"text": "For ever.", "status": "active", name: timestamp}
            answer = as_bob.post(f"/w/{workspace.slug}/memories/new/", data)
            assert answer.status_code == 422, (zone, name, timestamp)
        assert as_bob.get(f"/w/{workspace.slug}/memories/board/").status_code == 200
    assert not Memory.objects.in_workspace(workspace).exists()


def test_a_bot_cannot_send_an_overflowing_timestamp(workspace):
    overflowing = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))
    with pytest.raises(InvalidInput, match="Enter a year from 1000 to 9998"):
        create_memory(workspace, {"text": "For ever.", "valid_from": overflowing}, by=Actor.bot("scout"))


def test_a_time_beyond_the_allowed_years_is_stored_as_the_nearest_allowed_one(workspace, as_bob, alice):
    """RFC 3339 allows it, and 9999-12-31 is a usual way to write "forever"."""
    _, secret = create_key(workspace, "Key", {}, by=Actor.person(alice), kind=ADMIN)
    times = {"valid_from": "0000-01-01T00:00:00Z", "valid_until": "9999-12-31T23:59:59-12:00"}
    response = Api(secret, Client()).post("memories", {"text": "Forever.", **times})
    assert response.status_code == 201, response.content
    assert response.json()["valid_from"] == "1000-01-01T00:00:00Z"
    assert response.json()["valid_until"].startswith("9998-12-31T23:59:59")
    for page in ("", "board/", "?format=csv"):
        assert as_bob.get(f"/w/{workspace.slug}/memories/{page}").status_code == 200


@pytest.mark.slow
def test_the_first_and_last_allowed_years_can_be_shown_in_every_timezone(workspace, as_bob, bob):
    for year in (1000, 9998):
        ends = [datetime(year, 1, 1, tzinfo=UTC), datetime(year, 12, 31, 23, 59, tzinfo=UTC)]
        make_memory(workspace, "Long.", valid_from=ends[0], valid_until=ends[1])
    for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago"):
        bob.timezone = zone
        bob.save()
        for page in ("", "board/", "?format=csv"):
            assert as_bob.get(f"/w/{workspace.slug}/memories/{page}").status_code == 200


def test_restoring_a_revision_also_restores_the_archived_status(workspace, by_alice):
    memory = make_memory(workspace, "The gate is blue.")
    revoked = revoke_memory(memory, by=by_alice)
    active = restore_revision(revoked, 1, expected=2, by=by_alice)
    assert (active.status, active.is_archived) == (MemoryStatus.ACTIVE, False)
    archived = restore_revision(active, 2, expected=3, by=by_alice)
    assert (archived.status, archived.is_archived) == (MemoryStatus.REVOKED, True)
