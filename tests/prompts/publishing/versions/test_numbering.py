"""Versions are numbered 1…n under concurrent writers, and an action that fails midway changes nothing."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from django.db import DatabaseError, OperationalError, connection, transaction
from django.db.transaction import TransactionManagementError
from django.utils import timezone

from personas.actors import Actor
from personas.contents.services import SaltedDigests
from personas.memories.services import create_memory
from personas.records.services import edit_record
from prompts.assembly.inputs import Text
from prompts.evidence.erasure.services import erase_record
from prompts.models import AgentPrompt, BuildCause, LabelMove, PromptLabel, PromptVersion
from prompts.proof_rows import build_label_move_row, build_version_row
from prompts.publishing.builds import services as builds_services
from prompts.publishing.builds.build_rows import query_locked_prompts
from prompts.publishing.builds.compiler import compile_prompt
from prompts.publishing.builds.publish import BuildAuthor, publish_versions
from prompts.publishing.builds.services import lock_or_create_prompts, rebuild_agents
from prompts.publishing.inputs import CollectedInputs, collect_inputs
from prompts.publishing.labels.services import roll_back
from prompts.publishing.releases.services import approve_release, request_release, run_release
from tests.compiled_queries import compile_again
from tests.factories import BY, make_agent, make_channel, make_memory, make_soul

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

WRITERS = 16
# For a lock in SQLite, for a lock in PostgreSQL, for a connection of the pool.
TIMEOUTS = ("locked", "lock timeout", "couldn't get a connection")


@pytest.fixture
def deck(workspace):
    return make_channel(workspace, "deck")


@pytest.fixture
def soul(workspace):
    return make_soul(workspace, text="Be brave.")


@pytest.fixture
def pilot(workspace, deck, soul):
    return make_agent(workspace, "pilot", soul=soul, channels=[deck])


def collect_agent_inputs(agent) -> CollectedInputs:
    [inputs] = collect_inputs(agent.workspace_id, [agent], at=timezone.now())
    return inputs


def publish_text(inputs: CollectedInputs, text: str) -> None:
    """Publish a version with this text, through the same lock and service as every build."""
    agent = inputs.agent
    result = compile_prompt(replace(inputs, inputs=replace(inputs.inputs, soul=Text(text))))
    with transaction.atomic():
        [prompt] = lock_or_create_prompts(agent.workspace_id, [agent.pk]).values()
        publish_versions(
            SaltedDigests(agent.workspace_id), [(prompt, result, BuildAuthor("test"))], at=timezone.now()
        )
        prompt.save()
    # Return the connection to the pool, as at the end of a request: there are more writers than connections.
    connection.close()


def publish_with_retry(inputs: CollectedInputs, text: str) -> None:
    """Publish, and retry after a timeout: SQLite does not queue writers, and a busy machine is slow."""
    while True:
        try:
            return publish_text(inputs, text)
        except OperationalError as error:
            connection.close()
            if not any(timeout in str(error) for timeout in TIMEOUTS):
                raise


def run_concurrently(count: int, work: Callable[[int], None]) -> list[BaseException]:
    errors: list[BaseException] = []
    gate = threading.Barrier(count)

    def run(place: int) -> None:
        try:
            gate.wait(60)
            work(place)
        except BaseException as error:  # noqa: BLE001  # returned to the test
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(place,)) for place in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return errors


def find_chain_faults(prompt: AgentPrompt) -> list[str]:
    """List gaps in the numbers and rows that do not follow from the previous one."""
    faults, previous = [], ""
    rows = PromptVersion.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt).order_by("number")
    for place, version in enumerate(rows.select_related("prompt"), start=1):
        if version.number != place or version.previous_hash != previous:
            faults.append(f"version {version.number} at place {place}")
        if build_version_row(version).hash(previous) != version.hash:
            faults.append(f"hash of version {version.number}")
        previous = version.hash
    prompt.refresh_from_db()
    if (prompt.last_number, prompt.last_hash) != (rows.count(), previous):
        faults.append("the head")
    return faults


@pytest.mark.promise("R3")
@pytest.mark.parametrize("each", [2, pytest.param(50, marks=pytest.mark.hard)])
def test_sixteen_writers_publish_without_a_gap(pilot, each, record_property):
    inputs = collect_agent_inputs(pilot)

    def write(place: int) -> None:
        for turn in range(each):
            publish_with_retry(inputs, f"Be {place} and {turn}.")

    assert run_concurrently(WRITERS, write) == []
    prompt = AgentPrompt.objects.in_workspace(pilot.workspace_id).get(agent=pilot)
    assert prompt.last_number == 1 + WRITERS * each
    digests = PromptVersion.objects.in_workspace(pilot.workspace_id).values_list("digest", flat=True)
    assert len(set(digests)) == 1 + WRITERS * each
    assert find_chain_faults(prompt) == []
    record_property("measured", f"{WRITERS} writers, {prompt.last_number:,} versions, no gap, none twice")


@pytest.mark.promise("R3")
@pytest.mark.planted
def test_without_the_lock_numbers_collide(pilot, monkeypatch):
    """Planted fault: the prompt is read without a row lock."""
    if connection.vendor == "sqlite":
        pytest.skip("SQLite lets one writer in at a time, lock or no lock")
    monkeypatch.setattr("django.db.models.query.QuerySet.select_for_update", lambda self, **_: self.all())
    compile_again(monkeypatch, query_locked_prompts)
    inputs = collect_agent_inputs(pilot)

    def write(place: int) -> None:
        for turn in range(10):
            publish_text(inputs, f"Be {place} and {turn}.")

    errors = run_concurrently(WRITERS, write)
    prompt = AgentPrompt.objects.in_workspace(pilot.workspace_id).get(agent=pilot)
    assert errors or find_chain_faults(prompt)


class Broken(DatabaseError):
    """The error raised at statement N."""


@contextmanager
def failing_at(number: int) -> Iterator[None]:
    seen = 0

    def wrapper(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal seen
        seen += 1
        if seen == number:
            raise Broken(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(wrapper):
        yield


def get_state(workspace) -> tuple[Any, ...]:
    """Return everything that could reveal a partial write; assert that all chains are valid."""
    prompts = list(AgentPrompt.objects.in_workspace(workspace).order_by("pk"))
    labels = PromptLabel.objects.in_workspace(workspace).order_by("pk")
    moves = LabelMove.objects.in_workspace(workspace).select_related("prompt").order_by("prompt", "sequence")
    assert [fault for prompt in prompts for fault in find_chain_faults(prompt)] == []
    assert all(build_label_move_row(move).hash(move.previous_hash) == move.hash for move in moves)
    return (
        [(row.last_number, row.latest_id, row.last_move, row.is_pinned, row.is_active) for row in prompts],
        list(labels.values_list("prompt_id", "name", "version_id")),
        moves.count(),
        PromptVersion.objects.in_workspace(workspace).count(),
    )


def fail_each_statement(workspace, action: Callable[[], Any], most: int = 400) -> int:
    """Fail the action at its first statement, its second and so on, until it succeeds."""
    before = get_state(workspace)
    for number in range(1, most):
        try:
            with failing_at(number):
                action()
        except Broken:
            assert get_state(workspace) == before, f"half-done after statement {number}"
            continue
        assert get_state(workspace) != before
        return number
    raise AssertionError("it never passed")


@pytest.fixture
def no_builds(monkeypatch):
    """Disable builds after commit, so that only the action under test runs."""
    monkeypatch.setattr("prompts.receivers.build_or_enqueue", lambda *_: None)


@pytest.mark.hard
@pytest.mark.promise("R14")
def test_a_rebuild_that_fails_anywhere_shows_nothing(pilot, soul, workspace, no_builds, settings):
    settings.DRAMATIS_BUILD_AT_ONCE = 0
    edit_record(soul, {"text": "Be wise."}, expected=soul.revision, by=BY)
    assert fail_each_statement(workspace, lambda: rebuild_agents(workspace, [pilot.pk])) > 10


@pytest.mark.promise("R14")
def test_a_rollback_that_fails_anywhere_shows_nothing(pilot, soul, workspace, alice):
    edit_record(soul, {"text": "Be wise."}, expected=soul.revision, by=BY)
    prompt = AgentPrompt.objects.in_workspace(workspace).get(agent=pilot)
    by = Actor.person(alice)
    assert fail_each_statement(workspace, lambda: roll_back([prompt], by=by, note="Back.")) > 5


@pytest.mark.hard
@pytest.mark.promise("R14")
def test_a_release_that_fails_anywhere_shows_nothing(soul, deck, workspace, alice, bob):
    agents = [
        make_agent(workspace, f"careful-{at}", soul=soul, channels=[deck], release_policy="reviewed")
        for at in range(3)
    ]
    prompts = list(AgentPrompt.objects.in_workspace(workspace).filter(agent__in=agents))
    release = request_release(workspace, prompts, message="All", by=Actor.person(alice))
    approve_release(release, by=Actor.person(bob))
    statements = fail_each_statement(workspace, lambda: run_release(release, by=Actor.person(alice)))
    assert statements > 5
    assert PromptLabel.objects.in_workspace(workspace).filter(name="production").count() == 3


@pytest.mark.hard
@pytest.mark.promise("R14")
def test_an_erasure_that_fails_anywhere_shows_nothing(pilot, workspace, alice, no_builds):
    memory = make_memory(workspace, "The cook is called Rosamund.")
    rebuild_agents(workspace, [pilot.pk])
    action = lambda: erase_record(memory, reason="Asked for.", by=Actor.person(alice))  # noqa: E731  # read once
    assert fail_each_statement(workspace, action) > 10


@pytest.mark.planted
@pytest.mark.promise("R14")
def test_an_action_that_is_not_atomic_is_found(pilot, soul, workspace, alice):
    """Planted fault: the service runs without a transaction."""
    edit_record(soul, {"text": "Be wise."}, expected=soul.revision, by=BY)
    prompt = AgentPrompt.objects.in_workspace(workspace).get(agent=pilot)
    step_by_step: Any = vars(roll_back)["__wrapped__"]
    with pytest.raises((AssertionError, TransactionManagementError)):
        fail_each_statement(workspace, lambda: step_by_step([prompt], by=Actor.person(alice), note="Back."))


@pytest.mark.promise("R14")
def test_an_edit_that_fails_anywhere_is_undone_or_kept_with_its_cause(pilot, soul, workspace, monkeypatch):
    """The edit and its build are one transaction. A failed build is undone alone, and built later."""
    monkeypatch.setattr("prompts.tasks.enqueue_rebuilds", lambda *_: None)
    outcomes = {"undone": 0, "kept": 0}
    for number in range(1, 200):
        before, revision = get_state(workspace), soul.revision
        try:
            with failing_at(number):
                edit_record(soul, {"text": f"Be {number}."}, expected=revision, by=BY)
        except Broken:
            outcomes["undone"] += 1
        soul.refresh_from_db()
        if soul.text == f"Be {number}." and get_state(workspace) != before:
            break
        assert get_state(workspace) == before, f"half-done after statement {number}"
        causes = BuildCause.objects.in_workspace(workspace)
        if soul.revision == revision:
            assert not causes.exists()
        else:
            outcomes["kept"] += 1
            assert [cause.cause["revision"] for cause in causes] == [soul.revision]
            rebuild_agents(workspace, [pilot.pk])
            latest = PromptVersion.objects.in_workspace(workspace).order_by("number").last()
            assert latest is not None
            assert latest.causes[0]["revision"] == soul.revision
    assert outcomes["undone"] > 3
    assert outcomes["kept"] > 10
    # The version that was built at once has its cause too, and no row is left.
    latest = PromptVersion.objects.in_workspace(workspace).order_by("number").last()
    assert latest is not None
    assert [cause["revision"] for cause in latest.causes] == [soul.revision]
    assert not BuildCause.objects.in_workspace(workspace).exists()


@pytest.mark.planted
@pytest.mark.promise("R14")
def test_a_build_without_its_own_savepoint_is_found(pilot, soul, workspace, monkeypatch):
    """Planted fault: a failed build in the transaction of the edit is not undone."""
    monkeypatch.setattr("prompts.tasks.enqueue_rebuilds", lambda *_: None)
    without_savepoint: Any = vars(builds_services.try_rebuild_batch)["__wrapped__"]
    monkeypatch.setattr(builds_services, "try_rebuild_batch", without_savepoint)
    with pytest.raises((AssertionError, DatabaseError, TransactionManagementError)):
        test_an_edit_that_fails_anywhere_is_undone_or_kept_with_its_cause(pilot, soul, workspace, monkeypatch)


def test_an_edit_is_kept_although_its_build_fails(pilot, workspace, monkeypatch):
    """The edit is committed; its cause stays pending, and the next build includes it."""

    def broken(*_: Any, **__: Any) -> None:
        raise DatabaseError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(builds_services, "publish_versions", broken)
        create_memory(workspace, {"text": "The harbour closes at nine."}, by=BY)
    assert PromptVersion.objects.in_workspace(workspace).count() == 1
    rebuild_agents(workspace, [pilot.pk])
    assert PromptVersion.objects.in_workspace(workspace).count() == 2
