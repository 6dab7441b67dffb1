"""Erasure: the text is nowhere in the database, and the hash chains still verify."""

from typing import Any

import pytest
from django.db import DatabaseError, transaction

from personas.erasure.services import NotErasable
from personas.errors import InvalidInput, RecordErased
from personas.memories.services import reinstate_memory
from personas.models import Agent, AuditEvent, Erasure, Revision
from personas.records.services import edit_record, restore_revision
from prompts.evidence.erasure.services import erase_record
from prompts.models import AgentPrompt, PromptLabel, PromptVersion
from prompts.proof_rows import build_version_row
from prompts.publishing.versions.selectors import get_version_text, has_erased_content
from tests.factories import BY, make_agent, make_channel, make_memory, make_profile, make_soul
from tests.prompts.evidence.erasure.guesses import find_columns_with
from tests.shared_cast import (  # noqa: F401  # fixtures
    SharedCast,
    shared_alice,
    shared_as_alice,
    shared_as_bob,
    shared_as_mallory,
    shared_bob,
    shared_cast,
    shared_commits,
    shared_elsewhere,
    shared_mallory,
    shared_props,
    shared_workspace,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("commits")]

SECRET = "Mrs Penhaligon keeps her spare key under the third flowerpot."


def set_stage(shared: SharedCast) -> Agent:
    workspace = shared.workspace
    return make_agent(workspace, "pilot", channels=[make_channel(workspace, "deck")])


@pytest.fixture
def pilot(props: Agent) -> Agent:
    return props


def prompt_of(agent) -> Any:
    return AgentPrompt.objects.in_workspace(agent.workspace_id).select_related("latest").get(agent=agent)


@pytest.mark.slow
def test_an_erased_memory_is_nowhere_in_the_database(pilot, workspace, by_alice):
    memory = make_memory(workspace, SECRET, source="Overheard")
    memory = edit_record(memory, {"text": f"{SECRET} Still."}, expected=memory.revision, by=BY)
    assert find_columns_with("third flowerpot")
    erasure = erase_record(memory, reason="She asked for it.", by=by_alice)
    assert find_columns_with("third flowerpot") == []
    assert (len(erasure.versions), bool(erasure.digests)) == (2, True)


def test_the_former_versions_say_so_and_their_chain_still_holds(pilot, workspace, by_alice):
    memory = make_memory(workspace, SECRET)
    erase_record(memory, reason="She asked for it.", by=by_alice)
    versions = list(PromptVersion.objects.in_workspace(workspace).order_by("number"))
    assert [has_erased_content(version) for version in versions] == [False, True, False]
    assert "⟦erased⟧" in get_version_text(versions[1])
    for version in versions:
        assert build_version_row(version).hash(version.previous_hash) == version.hash


def test_labels_leave_erased_versions(pilot, workspace, by_alice):
    memory = make_memory(workspace, SECRET)
    assert PromptLabel.objects.in_workspace(workspace).get(name="production").version.number == 2
    erase_record(memory, reason="She asked for it.", by=by_alice)
    assert (
        PromptLabel.objects.in_workspace(workspace).get(name="production").version == prompt_of(pilot).latest
    )


def test_text_of_another_record_is_kept(pilot, workspace, by_alice):
    memory, _twin = make_memory(workspace, SECRET), make_memory(workspace, SECRET)
    erase_record(memory, reason="Said twice.", by=by_alice)
    assert SECRET in get_version_text(prompt_of(pilot).latest)


@pytest.mark.slow
def test_a_profile_is_erased_with_its_names(workspace, by_alice):
    profile = make_profile(
        workspace, "Penhaligon", display_name="Rosamund Penhaligon", notes="Deaf in one ear."
    )
    make_agent(workspace, "cook", user_profile=profile, channels=[make_channel(workspace, "galley")])
    erase_record(profile, reason="She left.", by=by_alice)
    assert find_columns_with("Rosamund Penhaligon") == []
    assert find_columns_with("Deaf in one ear") == []


def test_an_erasure_needs_a_reason_and_a_person_to_be_about(pilot, workspace, by_alice):
    memory = make_memory(workspace, SECRET)
    with pytest.raises(InvalidInput, match="reason"):
        erase_record(memory, reason=" ", by=by_alice)
    with pytest.raises(NotErasable):
        erase_record(make_soul(workspace), reason="No.", by=by_alice)
    assert find_columns_with("third flowerpot")


def test_what_was_erased_cannot_come_back(workspace, by_alice):
    memory = make_memory(workspace, SECRET)
    erase_record(memory, reason="She asked for it.", by=by_alice)
    memory.refresh_from_db()
    with pytest.raises(RecordErased):
        reinstate_memory(memory, by=by_alice)
    with pytest.raises(RecordErased):
        restore_revision(memory, 1, expected=memory.revision, by=by_alice)
    with pytest.raises(RecordErased):
        edit_record(memory, {"text": "Again."}, expected=memory.revision, by=by_alice)


def test_without_a_tombstone_the_database_refuses_to_blank_history(workspace):
    memory = make_memory(workspace, SECRET)
    rows = Revision.objects.in_workspace(workspace).filter(kind="memory", object_id=memory.pk)
    with pytest.raises(DatabaseError), transaction.atomic():
        rows.update(data={"erased": True}, message="")
    Erasure(workspace=workspace, kind="memory", object_id=memory.pk, reason="Test").save()
    with pytest.raises(DatabaseError), transaction.atomic():
        rows.update(data={"erased": True, "text": "Forged"}, message="")
    with pytest.raises(DatabaseError), transaction.atomic():
        rows.update(data={"erased": True}, message="", number=9)
    with pytest.raises(DatabaseError), transaction.atomic():
        AuditEvent.objects.in_workspace(workspace).filter(kind="memory").delete()
    rows.update(data={"erased": True}, message="")
