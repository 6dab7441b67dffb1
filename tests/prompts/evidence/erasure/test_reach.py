"""An erasure reaches every place where the text is stored, also those that no version shows."""

import pytest

from personas.memories.services import supersede_memory
from personas.models import Erasure, IdempotentResponse, Memory
from personas.records.services import archive_record, edit_record, restore_record
from prompts.assembly.layouts import LAYOUTS
from prompts.assembly.slots import Slots
from prompts.evidence.erasure.services import erase_record
from prompts.models import PromptVersion
from prompts.publishing.provenance import usage
from prompts.publishing.versions.selectors import has_erased_content
from prompts.publishing.versions.stored_inputs import build_call_prompt, load_remaining_inputs
from tests.factories import BY, make_agent, make_channel, make_memory, make_profile
from tests.prompts.evidence.erasure.guesses import find_columns_with
from tests.prompts.evidence.erasure.test_erasure import SECRET, prompt_of
from tests.shared_cast import (  # noqa: F401  # fixtures
    shared_alice,
    shared_as_alice,
    shared_bob,
    shared_cast,
    shared_commits,
    shared_workspace,
)

HAS_ELSEWHERE = False
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("commits"), pytest.mark.slow]


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_stored_inputs_of_a_layout_without_a_place_for_the_record_are_erased(workspace, by_alice, layout):
    profile = make_profile(
        workspace, "Penhaligon", display_name="Rosamund Penhaligon", notes="Deaf in one ear."
    )
    agent = make_agent(
        workspace, "pilot", layout=layout, user_profile=profile, channels=[make_channel(workspace, "deck")]
    )
    memory = make_memory(workspace, SECRET)
    for record in (memory, profile):
        erase_record(record, reason="She asked for it.", by=by_alice)
    assert [find_columns_with(text) for text in ("third flowerpot", "Deaf in one ear", "Rosamund")] == [
        []
    ] * 3
    # A call that changes the inputs can still be served.
    inputs = load_remaining_inputs(prompt_of(agent).latest)
    assert (inputs.user.name if inputs.user else "", inputs.memories) == ("", ())


def test_the_text_is_not_in_the_history_of_the_memory_that_it_superseded(workspace, by_alice):
    make_agent(workspace, "pilot", channels=[make_channel(workspace, "deck")])
    old, new = make_memory(workspace, "Keeps a key."), make_memory(workspace, SECRET)
    supersede_memory(old, new, by=by_alice)
    erase_record(new, reason="She asked for it.", by=by_alice)
    assert find_columns_with("third flowerpot") == []


def test_a_record_is_erased_from_more_ranges_than_pages_show(workspace, by_alice, monkeypatch):
    monkeypatch.setattr(usage, "MAX_RANGE_ENDS", 2)
    make_agent(workspace, "pilot", channels=[make_channel(workspace, "deck")])
    memory = make_memory(workspace, SECRET)
    for _ in range(3):
        memory = restore_record(archive_record(memory, by=BY), by=BY)
    erasure = erase_record(memory, reason="She asked for it.", by=by_alice)
    versions = PromptVersion.objects.in_workspace(workspace).order_by("number")
    assert [has_erased_content(version) for version in versions] == [False, True] * 4 + [False]
    assert len(erasure.versions) == 4
    assert find_columns_with("third flowerpot") == []


def test_ranges_end_with_their_prompt(workspace):
    for name in ("pilot", "cook"):
        make_agent(workspace, name, channels=[make_channel(workspace, f"{name}-deck")])
    memory = make_memory(workspace, SECRET)
    archive_record(memory, by=BY)
    memory = restore_record(memory, by=BY)
    ranges = [one for _prompt, one in usage.iterate_record_ranges(workspace, "memory", memory.pk)]
    assert [(one.first, one.last) for one in ranges] == [(2, 2), (4, None)] * 2


def test_a_call_on_a_version_with_erased_inputs_is_built_without_them(workspace, by_alice):
    agent = make_agent(workspace, "pilot", layout="pi", channels=[make_channel(workspace, "deck")])
    memory = make_memory(workspace, SECRET)
    erase_record(memory, reason="She asked for it.", by=by_alice)
    version = prompt_of(agent).latest
    assert not has_erased_content(version)
    assert load_remaining_inputs(version).memories == ()
    assert build_call_prompt(version, Slots()) is None


# --- stored responses ----------------------------------------------------------------------------------


def test_a_retry_after_an_erasure_creates_no_second_record(admin, workspace, by_alice):
    first = admin.post("memories", {"text": SECRET}, Idempotency_Key="one")
    other = admin.post("memories", {"text": "Likes tea."}, Idempotency_Key="two")
    memory = Memory.objects.in_workspace(workspace).get(pk=first.json()["id"])
    memory = edit_record(memory, {"text": "Moved house."}, expected=memory.revision, by=BY)
    erase_record(memory, reason="She asked for it.", by=by_alice)
    retry = admin.post("memories", {"text": SECRET}, Idempotency_Key="one")
    assert (retry.status_code, retry.json()["code"]) == (410, "erased")
    assert "succeeded" in retry.json()["detail"]
    again = admin.post("memories", {"text": "Likes tea."}, Idempotency_Key="two")
    assert (again.status_code, again.content) == (201, other.content)
    assert Memory.objects.in_workspace(workspace).count() == 2
    assert find_columns_with("third flowerpot") == []


def test_a_stored_response_with_an_escaped_text_becomes_a_stub(admin, workspace, by_alice):
    first = admin.post("memories", {"text": 'Said “Grüße”\nand "left".'}, Idempotency_Key="one")
    memory = Memory.objects.in_workspace(workspace).get(pk=first.json()["id"])
    erase_record(memory, reason="She asked for it.", by=by_alice)
    stub = IdempotentResponse.objects.in_workspace(workspace).get()
    assert (stub.is_erased, bytes(stub.body), stub.headers, stub.body_digest) == (True, b"", {}, "")


def test_erasing_twice_keeps_one_tombstone(workspace, by_alice):
    make_agent(workspace, "pilot", channels=[make_channel(workspace, "deck")])
    memory = make_memory(workspace, SECRET)
    first = erase_record(memory, reason="She asked for it.", by=by_alice)
    second = erase_record(memory, reason="Again.", by=by_alice)
    assert (second.pk, second.versions, second.status) == (first.pk, first.versions, "done")
    assert Erasure.objects.in_workspace(workspace).count() == 1
