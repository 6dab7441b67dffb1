"""Record services: create, edit, archive, restore, restore a revision."""

import pytest

from personas.errors import EditConflict, InvalidInput, RecordInUse
from personas.models import AuditEvent, Revision, Soul
from personas.records.services import (
    archive_record,
    create_record,
    edit_record,
    restore_record,
    restore_revision,
)
from personas.signals import agent_changed
from tests.factories import make_agent, make_channel, make_identity, make_soul, make_tool
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


def test_a_new_record_has_a_first_revision_and_an_audit_event(workspace, by_alice):
    soul = create_record(Soul, workspace, {"name": "Calm", "slug": "calm", "text": "Be calm."}, by=by_alice)
    revision = Revision.objects.in_workspace(workspace).get(kind="soul", object_id=soul.pk)
    event = AuditEvent.objects.in_workspace(workspace).filter(kind="soul").get()
    assert (revision.number, revision.data, revision.author) == (
        1,
        {"name": "Calm", "text": "Be calm."},
        by_alice.user,
    )
    assert (event.verb, event.before) == ("created", None)
    assert event.after == {"name": "Calm", "text": "Be calm."}


def test_an_edit_adds_a_revision_and_audits_the_values_before(workspace, by_alice):
    soul = make_soul(workspace, text="Old")
    soul = edit_record(soul, {"text": "New"}, expected=1, by=by_alice, message="Fresher")
    event = AuditEvent.objects.in_workspace(workspace).filter(kind="soul", verb="edited").get()
    assert soul.revision == 2
    assert (event.before, event.after) == ({"name": "Calm", "text": "Old"}, {"name": "Calm", "text": "New"})
    assert Revision.objects.in_workspace(workspace).get(kind="soul", number=2).message == "Fresher"


def test_saving_without_a_change_writes_nothing(workspace, by_alice):
    soul = make_soul(workspace)
    before = (Soul.objects.in_workspace(workspace).get(pk=soul.pk).updated_at, Revision.unscoped.count())
    edit_record(soul, {"text": soul.text}, expected=1, by=by_alice)
    assert (
        Soul.objects.in_workspace(workspace).get(pk=soul.pk).updated_at,
        Revision.unscoped.count(),
    ) == before


def test_the_later_of_two_edits_conflicts_and_overwrites_nothing(workspace, by_alice):
    soul = make_soul(workspace, text="One")
    edit_record(soul, {"text": "Two"}, expected=1, by=by_alice)
    with pytest.raises(EditConflict) as caught:
        edit_record(soul, {"text": "Three"}, expected=1, by=by_alice)
    assert (caught.value.record.revision, caught.value.expected) == (2, 1)
    assert Soul.objects.in_workspace(workspace).get(pk=soul.pk).text == "Two"


def test_an_old_revision_comes_back_as_a_new_one(workspace, by_alice):
    soul = make_soul(workspace, text="First")
    edit_record(soul, {"text": "Second"}, expected=1, by=by_alice)
    soul = restore_revision(soul, 1, expected=2, by=by_alice)
    assert (soul.revision, soul.text) == (3, "First")


def test_an_agents_links_come_back_with_its_revision(workspace, by_alice):
    tools = [make_tool(workspace, name) for name in ("zeta", "alpha")]
    channel, soul = make_channel(workspace), make_soul(workspace)
    agent = make_agent(workspace, tools=tools, channels=[channel], soul=soul)
    first = agent.snapshot()
    edit_record(
        agent, {"tools": [], "planning_tools": tools, "channels": [], "soul": None}, expected=1, by=by_alice
    )
    agent = restore_revision(agent, 1, expected=2, by=by_alice)
    assert agent.snapshot() == first
    assert [link.tool.name for link in agent.tool_links.all()] == ["zeta", "alpha"]


def test_an_archived_record_stays_stored_and_can_be_restored(workspace, by_alice):
    soul = archive_record(make_soul(workspace), by=by_alice)
    assert soul.is_archived
    assert not restore_record(soul, by=by_alice).is_archived
    verbs = AuditEvent.objects.in_workspace(workspace).filter(kind="soul").order_by("pk")
    assert list(verbs.values_list("verb", flat=True)) == ["created", "archived", "restored"]


def test_what_an_agent_uses_cannot_be_archived(workspace, by_alice):
    identity = make_identity(workspace)
    make_agent(workspace, "pilot", identity=identity)
    with pytest.raises(RecordInUse, match="In use by Pilot"):
        archive_record(identity, by=by_alice)


def test_a_name_is_taken_even_by_an_archived_record(workspace, by_alice):
    archive_record(make_tool(workspace, "search"), by=by_alice)
    with pytest.raises(InvalidInput):
        make_tool(workspace, "search")


def test_a_tool_cannot_be_active_and_only_for_planning(workspace):
    tool = make_tool(workspace)
    with pytest.raises(InvalidInput, match="planning_tools"):
        make_agent(workspace, tools=[tool], planning_tools=[tool])


def test_an_agent_cannot_be_below_itself(workspace, by_alice):
    captain = make_agent(workspace, "captain")
    mate = make_agent(workspace, "mate", parent=captain)
    with pytest.raises(InvalidInput, match="its own parent"):
        edit_record(captain, {"parent": mate}, expected=1, by=by_alice)


def test_an_edit_sends_the_signal_for_every_affected_agent(workspace, by_alice):
    soul = make_soul(workspace)
    agents = [make_agent(workspace, soul=soul) for _ in range(3)]
    make_agent(workspace)
    signals = []

    def receive(**kwargs):
        signals.append((kwargs["workspace_id"], kwargs["agent_ids"], kwargs["cause"].number))

    agent_changed.connect(receive)
    try:
        edit_record(soul, {"text": "Louder."}, expected=1, by=by_alice)
    finally:
        agent_changed.disconnect(receive)
    assert signals == [(workspace.pk, sorted(agent.pk for agent in agents), 2)]


def test_a_failed_edit_leaves_nothing_behind(workspace, by_alice):
    soul, revisions = make_soul(workspace), Revision.unscoped.count()
    with pytest.raises(InvalidInput, match="name"):
        edit_record(soul, {"name": "", "text": "Other"}, expected=1, by=by_alice)
    assert Soul.objects.in_workspace(workspace).get(pk=soul.pk).text == "Be calm."
    assert Revision.unscoped.count() == revisions
