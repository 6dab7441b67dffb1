"""An erasure on a reviewed agent releases nothing that was not approved."""

from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from personas.actors import Actor
from personas.api_keys.format import BOT
from personas.models import AuditEvent, Erasure, Memory, User, Workspace
from personas.records.services import archive_record, edit_record
from prompts.errors import NotAllowed
from prompts.evidence.erasure import label_moves
from prompts.evidence.erasure.services import erase_record, finish_erasure
from prompts.models import (
    PRODUCTION,
    AgentPrompt,
    LabelMove,
    MoveReason,
    PromptLabel,
    PromptVersion,
    Release,
)
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.labels.approval import APPROVAL_RULES
from prompts.publishing.labels.moves import move_labels
from prompts.publishing.labels.planned_moves import PlannedMove
from prompts.publishing.labels.services import lock_prompts, move_label, protect_label, roll_back
from prompts.publishing.releases.services import approve_release, request_release, run_release
from prompts.publishing.versions.selectors import get_version_text, has_erased_content
from prompts.tasks import finish_erasure_job, sweep_prompts_job
from tests.factories import BY, PASSWORD, make_agent, make_channel, make_memory, make_soul, signed_in
from tests.prompts.evidence.erasure.guesses import find_columns_with
from tests.prompts.evidence.erasure.test_erasure import SECRET
from tests.shared_cast import (  # noqa: F401  # fixtures
    SharedCast,
    shared_alice,
    shared_as_alice,
    shared_bob,
    shared_cast,
    shared_commits,
    shared_stage,
    shared_workspace,
)

HAS_ELSEWHERE = False
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("commits")]
APPROVED, PENDING = "Be brave.", "Insult the guests."


def set_stage(shared: SharedCast) -> None:
    """A reviewed agent whose production is approved, with an edit that is not."""
    workspace = shared.workspace
    shared.soul = make_soul(workspace, text=APPROVED)
    shared.memory, shared.other = make_memory(workspace, SECRET), make_memory(workspace, "Likes tea.")
    deck = make_channel(workspace, "deck")
    agent = make_agent(workspace, "careful", soul=shared.soul, channels=[deck], release_policy="reviewed")
    shared.prompt = AgentPrompt.objects.in_workspace(workspace).get(agent=agent)
    release_latest(workspace, shared.prompt, Actor.person(shared.alice), Actor.person(shared.bob))
    shared.soul = edit_record(shared.soul, {"text": PENDING}, expected=1, by=BY)


@pytest.fixture
def by_bob(bob: User) -> Actor:
    return Actor.person(bob)


def release_latest(workspace: Workspace, prompt: AgentPrompt, by: Actor, approver: Actor) -> Release:
    release = request_release(workspace, [prompt], message="Reviewed", by=by)
    return run_release(approve_release(release, by=approver), by=by)


def find_label(prompt: AgentPrompt, name: str = PRODUCTION) -> PromptVersion | None:
    rows = PromptLabel.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt, name=name)
    label = rows.select_related("version").first()
    return label.version if label else None


def get_text(prompt: AgentPrompt, name: str = PRODUCTION) -> str:
    version = find_label(prompt, name)
    assert version is not None
    return get_version_text(version)


def get_latest(prompt: AgentPrompt) -> PromptVersion:
    latest = AgentPrompt.objects.in_workspace(prompt.workspace_id).get(pk=prompt.pk).latest
    assert latest is not None
    return latest


def fetch(key_for: Any, stage: Any) -> Any:
    return key_for(stage.workspace, stage.alice, BOT).get("agents/careful/channels/deck/prompt")


def test_production_is_its_own_version_without_the_record(stage, by_alice):
    erase_record(stage.memory, reason="She asked for it.", by=by_alice)
    text = get_text(stage.prompt)
    assert (APPROVED in text, "Likes tea." in text, PENDING in text, "flowerpot" in text) == (
        True,
        True,
        False,
        False,
    )
    assert PENDING in get_version_text(get_latest(stage.prompt))
    assert find_columns_with("third flowerpot") == []
    move = LabelMove.objects.in_workspace(stage.workspace).order_by("-sequence").first()
    assert move is not None
    assert (move.reason, move.note) == (
        "erasure",
        f"Version 1 without memory {stage.memory.pk}, which was erased",
    )
    event = AuditEvent.objects.in_workspace(stage.workspace).filter(kind="label").order_by("-pk").first()
    assert event is not None
    assert event.after is not None
    assert (event.after["cause"], event.after["note"]) == ("erasure", move.note)


def test_an_open_release_of_a_version_with_the_record_is_voided(stage, by_alice, by_bob):
    pending = get_latest(stage.prompt)
    release = request_release(stage.workspace, [stage.prompt], message="Next", by=by_alice)
    erase_record(stage.memory, reason="She asked for it.", by=by_alice)
    assert get_latest(stage.prompt).number == pending.number + 2
    assert approve_release(release, by=by_bob).status == "voided"


def test_latest_stays_latest_if_only_production_contains_the_record(stage, by_alice):
    memory = archive_record(stage.memory, by=BY)
    pending = get_latest(stage.prompt)
    erase_record(memory, reason="She asked for it.", by=by_alice)
    latest = get_latest(stage.prompt)
    assert (latest.digest, latest.number) == (pending.digest, pending.number + 2)
    assert APPROVED in get_text(stage.prompt)


def test_the_next_release_moves_on_from_the_replacement(stage, by_alice, by_bob):
    erase_record(stage.memory, reason="She asked for it.", by=by_alice)
    release_latest(stage.workspace, stage.prompt, by_alice, by_bob)
    assert PENDING in get_text(stage.prompt)


def test_a_version_that_cannot_be_built_again_loses_its_label_and_gets_a_release(
    stage, by_alice, key_for, monkeypatch
):
    monkeypatch.setattr("prompts.evidence.erasure.label_builds.has_only_text_of", lambda *_: False)
    erase_record(stage.memory, reason="She asked for it.", by=by_alice)
    assert find_label(stage.prompt) is None
    release = Release.objects.in_workspace(stage.workspace).order_by("-number").first()
    assert release is not None
    assert (release.status, release.items.get().version) == ("requested", get_latest(stage.prompt))
    assert "removed by the erasure" in release.message
    move = LabelMove.objects.in_workspace(stage.workspace).order_by("-sequence").first()
    assert move is not None
    assert "assembled its text differently" in move.note
    answer = fetch(key_for, stage)
    assert (answer.status_code, answer.json()["code"]) == (410, "erased")
    assert "Release a newer version" in answer.json()["detail"]


def test_a_protected_label_gets_its_own_version_too(stage, by_alice):
    first = find_label(stage.prompt)
    assert first is not None
    move_label(stage.prompt, "stable", get_latest(stage.prompt), expected=None, by=by_alice)
    protect_label(stage.workspace, "stable", True, by=by_alice)
    edit_record(stage.soul, {"text": "Shout."}, expected=2, by=BY)
    erase_record(stage.memory, reason="She asked for it.", by=by_alice)
    assert PENDING in get_text(stage.prompt, "stable")
    assert APPROVED in get_text(stage.prompt)
    assert "Shout." in get_version_text(get_latest(stage.prompt))
    assert "flowerpot" not in get_text(stage.prompt, "stable")


def test_a_label_that_is_not_protected_follows_the_latest_build(stage, by_alice):
    move_label(stage.prompt, "canary", get_latest(stage.prompt), expected=None, by=by_alice)
    erase_record(stage.memory, reason="She asked for it.", by=by_alice)
    assert find_label(stage.prompt, "canary") == get_latest(stage.prompt)


def test_an_erasure_that_moves_production_to_latest_is_refused(stage, by_alice, monkeypatch):
    """Planted fault: the erasure treats production as an ungoverned label."""
    monkeypatch.setattr(label_moves, "is_governed", lambda label, protected: False)
    with pytest.raises(NotAllowed, match="not approved"):
        erase_record(stage.memory, reason="She asked for it.", by=by_alice)


def test_without_the_check_the_erasure_would_release_the_pending_text(stage, by_alice, monkeypatch):
    """Planted fault: no check of moves. It shows that the tests above can fail."""
    monkeypatch.setattr(label_moves, "is_governed", lambda label, protected: False)
    monkeypatch.setattr("prompts.publishing.labels.moves.check_moves", lambda *args: None)
    erase_record(stage.memory, reason="She asked for it.", by=by_alice)
    assert PENDING in get_text(stage.prompt)


def test_every_reason_has_a_rule(stage):
    assert set(APPROVAL_RULES) == set(MoveReason)


@pytest.mark.parametrize("reason", sorted(MoveReason))
def test_no_reason_moves_production_to_a_version_that_was_not_approved(stage, reason):
    [prompt] = lock_prompts(stage.workspace.pk, [stage.prompt.pk])
    move = PlannedMove(prompt, PRODUCTION, prompt.latest, reason, by="test")
    with pytest.raises(NotAllowed, match="not approved"), transaction.atomic():
        move_labels(stage.workspace.pk, [move], at=timezone.now())


# --- roll-backs ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_roll_back_to_an_erased_version_is_refused_with_its_field(stage, by_alice, by_bob, admin):
    release_latest(stage.workspace, stage.prompt, by_alice, by_bob)
    erase_record(stage.memory, reason="She asked for it.", by=by_alice)
    path = "agents/careful/channels/deck/labels/production:rollback"
    for body in ({"note": "Back."}, {"note": "Back.", "to": 1}):
        answer = admin.post(path, body)
        assert answer.status_code == 422
        [error] = answer.json()["errors"]
        assert error["pointer"] == "/to"
        assert "contains erased text and cannot be served" in error["detail"]
    page = signed_in(stage.alice).post(
        f"/w/{stage.workspace.slug}/prompts/{stage.prompt.pk}/roll-back/",
        {"note": "Back.", "to": 1},
        follow=True,
    )
    assert "contains erased text and cannot be served" in page.content.decode()
    assert find_label(stage.prompt) is not None


def test_a_roll_back_to_a_version_that_cannot_be_verified_is_refused(stage, by_alice, by_bob):
    release_latest(stage.workspace, stage.prompt, by_alice, by_bob)
    first = PromptVersion.objects.in_workspace(stage.workspace).get(number=1)
    first.text_digest = "0" * 64
    with pytest.raises(Exception, match="failed verification"):
        roll_back([stage.prompt], by=by_alice, note="Back.", to=first)


# --- many prompts --------------------------------------------------------------------------------------


@pytest.fixture
def erasure_in_worker(stage, by_alice, settings) -> Erasure:
    settings.DRAMATIS_BUILD_AT_ONCE = 0
    return erase_record(stage.memory, reason="She asked for it.", by=by_alice)


def test_an_erasure_of_many_prompts_waits_for_a_worker_but_the_text_is_gone(
    stage, erasure_in_worker, key_for
):
    assert erasure_in_worker.status == "rebuilding"
    assert find_columns_with("third flowerpot") == []
    label = find_label(stage.prompt)
    assert label is not None
    assert has_erased_content(label)
    assert fetch(key_for, stage).status_code == 410


def test_the_worker_finishes_it_once(stage, erasure_in_worker):
    for _ in range(2):
        finish_erasure_job(stage.workspace.pk, erasure_in_worker.pk)
    erasure_in_worker.refresh_from_db()
    assert erasure_in_worker.status == "done"
    assert APPROVED in get_text(stage.prompt)
    assert PENDING not in get_text(stage.prompt)
    moves = LabelMove.objects.in_workspace(stage.workspace).filter(reason="erasure")
    assert moves.count() == 1
    assert PENDING in get_version_text(get_latest(stage.prompt))


def test_a_build_before_the_worker_does_not_change_the_outcome(stage, erasure_in_worker):
    rebuild_agents(stage.workspace.pk, [stage.prompt.agent_id])
    finish_erasure(stage.workspace.pk, erasure_in_worker.pk)
    assert APPROVED in get_text(stage.prompt)
    assert PENDING in get_version_text(get_latest(stage.prompt))


def test_a_failed_worker_changes_nothing_and_the_sweep_tries_again(stage, erasure_in_worker, monkeypatch):
    with monkeypatch.context() as fault:
        fault.setattr("prompts.evidence.erasure.services.move_labels_off_erased", raise_fault)
        before = PromptVersion.objects.in_workspace(stage.workspace).count()
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            finish_erasure_job(stage.workspace.pk, erasure_in_worker.pk)
        assert PromptVersion.objects.in_workspace(stage.workspace).count() == before
    Erasure.objects.in_workspace(stage.workspace).update(rebuilding_since="2020-01-01T00:00:00Z")
    queued: list[tuple[Any, ...]] = []
    monkeypatch.setattr("prompts.tasks.enqueue_job", lambda job, *args: queued.append((job.name, *args)))
    sweep_prompts_job()
    assert ("prompts.tasks.finish_erasure_job", stage.workspace.pk, erasure_in_worker.pk) in queued


def raise_fault(*args: Any) -> None:
    raise ZeroDivisionError


@pytest.mark.slow
def test_the_api_returns_the_state_of_an_erasure(stage, admin, settings):
    settings.DRAMATIS_BUILD_AT_ONCE = 0
    body = {"kind": "memory", "record": stage.memory.pk, "reason": "She asked for it."}
    answer = admin.post("erasures", body)
    assert (answer.status_code, answer.json()["status"]) == (202, "rebuilding")
    finish_erasure(stage.workspace.pk, answer.json()["id"])
    again = admin.get(answer["Location"])
    # Only the answer to the request names other records with the text: nothing knows it later.
    assert again.json() | {"also_erased": [], "also_contains": []} == answer.json() | {"status": "done"}
    assert admin.get("erasures").json()["items"] == [again.json()]
    settings.DRAMATIS_BUILD_AT_ONCE = 20
    assert admin.post("erasures", body | {"record": stage.other.pk}).status_code == 201
    missing = admin.post("erasures", body | {"record": 10**9})
    assert (missing.status_code, missing.json()["errors"][0]["pointer"]) == (422, "/record")


def test_the_page_of_an_erasure_shows_that_prompts_are_being_rebuilt(stage, as_alice, erasure_in_worker):
    base = f"/w/{stage.workspace.slug}/erasures/"
    assert (
        "is rebuilding the affected prompts"
        in as_alice.get(f"{base}{erasure_in_worker.pk}/").content.decode()
    )
    assert "Rebuilding prompts" in as_alice.get(base).content.decode()
    finish_erasure(stage.workspace.pk, erasure_in_worker.pk)
    assert (
        "is rebuilding the affected prompts"
        not in as_alice.get(f"{base}{erasure_in_worker.pk}/").content.decode()
    )


# --- recent login --------------------------------------------------------------------------------------


def test_erasing_requires_a_recent_login(stage, client):
    stage.alice.set_password(PASSWORD)
    stage.alice.save()
    client.force_login(stage.alice)
    answer = client.post(
        f"/w/{stage.workspace.slug}/erasures/memories/{stage.memory.pk}/", {"reason": "No.", "sure": "on"}
    )
    assert answer.status_code == 302
    assert "/reauthenticate/" in answer["Location"]
    assert Memory.objects.in_workspace(stage.workspace).get(pk=stage.memory.pk).text == SECRET
