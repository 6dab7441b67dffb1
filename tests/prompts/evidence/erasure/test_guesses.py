"""Erased text cannot be guessed from what is left of it, and does not return when it is typed again."""

import pytest

from personas.models import Content, Workspace
from prompts.assembly.slots import Slots
from prompts.evidence.erasure import call_data
from prompts.evidence.erasure.services import erase_record
from prompts.evidence.integrity.verify import verify_workspace
from prompts.evidence.replay.evidence import build_evidence, run_evidence_checks
from prompts.evidence.replay.services import replay_entry
from prompts.models import CallContent, LedgerEntry, PromptVersion
from prompts.publishing.versions.selectors import get_content_salts, get_version_text, has_erased_content
from prompts.tasks import finish_erasure_job
from tests.factories import make_memory
from tests.prompts.evidence.erasure.guesses import find_columns_with, find_guessed_columns, list_stored_texts
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
    assert erasure.status == "rebuilding"
    assert find_columns_with("Penhaligon") == [
        '"personas_erasure"."pending_texts"',
        '"prompts_callcontent"."data"',
    ]
    finish_erasure_job(stage.workspace.pk, erasure.pk)
    assert find_columns_with("Penhaligon") == []
    erasure.refresh_from_db()
    assert (erasure.status, erasure.pending_texts) == ("done", None)


@pytest.mark.planted
def test_call_data_that_is_left_is_found(stage, by_alice, monkeypatch):
    monkeypatch.setattr("prompts.evidence.erasure.services.erase_call_data_containing", lambda *_: 0)
    serve_secret(stage)
    erase_record(stage.memory, reason="She asked for it.", by=by_alice)
    assert find_columns_with("Penhaligon") == ['"prompts_callcontent"."data"']
