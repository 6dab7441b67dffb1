"""Erased text cannot be guessed from what is left of it, and does not return when it is typed again."""

import pytest

from personas.models import Content, Workspace
from personas.records.services import edit_record
from prompts.assembly.slots import Slots
from prompts.builds.services import rebuild_agents
from prompts.erasure import call_data
from prompts.erasure.services import erase_record
from prompts.integrity.verify import verify_workspace
from prompts.models import CallContent, LedgerEntry, PromptVersion
from prompts.replay.evidence import build_evidence, run_evidence_checks
from prompts.replay.services import replay_entry
from prompts.tasks import finish_erasure_job
from prompts.versions.segments import list_content_digests
from prompts.versions.selectors import get_content_salts, get_version_text, has_erased_content
from tests.factories import BY, make_memory, make_workspace
from tests.prompts.erasure.guesses import find_columns_with, find_guessed_columns, list_stored_texts
from tests.prompts.serving.serving_stage import Stage, make_stage
from tests.shared_cast import (  # noqa: F401  # fixtures
    SharedCast,
    shared_alice,
    shared_as_alice,
    shared_bob,
    shared_cast,
    shared_commits,
    shared_props,
    shared_workspace,
)

HAS_ELSEWHERE = False
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("commits"), pytest.mark.slow]
SECRET = "The door code of Mrs Penhaligon is 8236."


def set_stage(shared: SharedCast) -> Stage:
    return make_stage(shared.workspace)


@pytest.fixture
def stage(props: Stage) -> Stage:
    return props


def list_right_guesses(stage: Stage) -> set[bytes]:
    """Return all texts with the secret, exactly as stored: the best that anybody can guess."""
    versions = PromptVersion.objects.in_workspace(stage.workspace)
    texts = {get_version_text(version).encode() for version in versions}
    texts |= {
        replay_entry(stage.workspace, key).text.encode()
        for key in LedgerEntry.objects.in_workspace(stage.workspace).values_list("pk", flat=True)
    }
    return {text for text in texts | list_stored_texts() if SECRET.encode() in text}


def list_salt_lists(workspace: Workspace) -> list[list[str]]:
    """Return the salts of each version as far as they are left."""
    versions = PromptVersion.objects.in_workspace(workspace)
    lists = []
    for version in versions:
        digests = [row[name] for row in version.segments for name in ("content", "given") if name in row]
        salts = get_content_salts(workspace, digests)
        lists += [[salts.get(digest, "") for digest in digests], list(salts.values())]
    return lists


def serve_secret(stage: Stage) -> None:
    """Serve the secret as a part of a version, and as a value of a call, short and long."""
    stage.memory = make_memory(stage.workspace, SECRET)  # type: ignore[attr-defined]
    stage.fetch()
    stage.fetch(slots=Slots(append=f"Remember: {SECRET}"))
    stage.fetch(slots=Slots(append=f"Remember: {SECRET} " + "And be brief. " * 100))


def test_erased_text_cannot_be_guessed_from_a_digest(stage, by_alice):
    serve_secret(stage)
    guesses = list_right_guesses(stage)
    assert len(guesses) >= 6
    erase_record(stage.memory, reason="She asked for it.", by=by_alice)
    assert find_columns_with("Penhaligon") == []
    assert find_guessed_columns(guesses, list_salt_lists(stage.workspace)) == []
    assert verify_workspace(stage.workspace).first is None


@pytest.mark.planted
def test_a_digest_without_a_salt_is_found(stage, by_alice, monkeypatch):
    monkeypatch.setattr("personas.contents.models.generate_salt", lambda: "")
    serve_secret(stage)
    guesses = list_right_guesses(stage)
    erase_record(stage.memory, reason="She asked for it.", by=by_alice)
    columns = find_guessed_columns(guesses, list_salt_lists(stage.workspace))
    assert {column.split(".")[0] for column in columns} >= {
        '"personas_content"',
        '"prompts_promptversion"',
        '"prompts_ledgerentry"',
        '"prompts_callcontent"',
    }


@pytest.mark.planted
def test_a_salt_that_is_left_is_found(stage, by_alice, monkeypatch):
    serve_secret(stage)
    guesses = list_right_guesses(stage)
    rows = Content.objects.in_workspace(stage.workspace).exclude(salt=None)
    salts = dict(rows.values_list("pk", "salt"))
    erase_record(stage.memory, reason="She asked for it.", by=by_alice)
    erased = rows.model.objects.in_workspace(stage.workspace).exclude(erased_at=None)
    for row in erased:
        row.salt = salts[row.pk]
        row.save()
    assert find_guessed_columns(guesses, list_salt_lists(stage.workspace))
    assert "its salt or plain digest was not" in str(verify_workspace(stage.workspace).first)


def test_typing_the_text_again_restores_no_old_version(stage, by_alice):
    serve_secret(stage)
    old = PromptVersion.objects.in_workspace(stage.workspace).order_by("-number")[0]
    erase_record(stage.memory, reason="She asked for it.", by=by_alice)
    make_memory(stage.workspace, SECRET)
    new = PromptVersion.objects.in_workspace(stage.workspace).order_by("-number")[0]
    assert SECRET in get_version_text(new)
    assert has_erased_content(old)
    assert SECRET not in get_version_text(old)
    assert new.digest != old.digest
    assert verify_workspace(stage.workspace).first is None


def test_sending_the_text_again_restores_no_old_call(stage, by_alice):
    serve_secret(stage)
    [*_, last] = stage.rows
    erase_record(stage.memory, reason="She asked for it.", by=by_alice)
    served = stage.fetch(slots=Slots(append=f"Remember: {SECRET} " + "And be brief. " * 100))
    assert SECRET in served.text
    replay = replay_entry(stage.workspace, last.pk)
    assert SECRET not in replay.text
    results = {check.name: check.state for check in run_evidence_checks(build_evidence(replay), None)}
    assert "failed" not in results.values()
    assert results["ledger seal"] == "ok"


def test_values_of_unrelated_calls_stay(stage, by_alice):
    serve_secret(stage)
    served = stage.fetch(slots=Slots(append="Be brief."))
    erase_record(stage.memory, reason="She asked for it.", by=by_alice)
    assert replay_entry(stage.workspace, served.ledger_id).problem == ""
    erased = CallContent.objects.in_workspace(stage.workspace).exclude(erased_at=None)
    assert erased.count() == 2


def test_much_call_data_is_searched_by_a_worker(stage, by_alice, monkeypatch):
    serve_secret(stage)
    monkeypatch.setattr(call_data, "MAX_SEARCHED_AT_ONCE", 100)
    erasure = erase_record(stage.memory, reason="She asked for it.", by=by_alice)
    assert erasure.state == "rebuilding"
    assert find_columns_with("Penhaligon") == [
        '"personas_erasure"."pending_texts"',
        '"prompts_callcontent"."data"',
    ]
    finish_erasure_job(stage.workspace.pk, erasure.pk)
    assert find_columns_with("Penhaligon") == []
    erasure.refresh_from_db()
    assert (erasure.state, erasure.pending_texts) == ("done", None)


@pytest.mark.planted
def test_call_data_that_is_left_is_found(stage, by_alice, monkeypatch):
    monkeypatch.setattr("prompts.erasure.services.erase_call_data_containing", lambda *_: 0)
    serve_secret(stage)
    erase_record(stage.memory, reason="She asked for it.", by=by_alice)
    assert find_columns_with("Penhaligon") == ['"prompts_callcontent"."data"']


def test_a_version_of_an_earlier_release_is_verified_and_not_built_again(alice, monkeypatch):
    """A version with plain digests stays valid and the latest; the next one has salts."""
    workspace = make_workspace("Old Harbour", owner=alice)
    with monkeypatch.context() as patch:
        patch.setattr("personas.contents.models.generate_salt", lambda: "")
        stage = make_stage(workspace, "Be brave.")
    contents = Content.objects.in_workspace(workspace)
    contents.update(salt=None, plain_digest=None)
    assert verify_workspace(workspace).first is None
    served = stage.fetch()
    assert stage.rows[-1].served_digest == served.served_digest
    rebuild_agents(workspace, [stage.agent.pk])
    versions = PromptVersion.objects.in_workspace(workspace).order_by("number")
    assert versions.count() == 1
    assert stage.agent.soul
    edit_record(stage.agent.soul, {"text": "Be wise."}, expected=1, by=BY)
    _, new = versions
    digests = list_content_digests(new.segments, new.tools)
    assert get_content_salts(workspace, digests).keys() == digests
    assert verify_workspace(workspace).first is None
