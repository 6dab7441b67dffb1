"""Versions are numbered 1…n whoever publishes when, and a verb that fails midway leaves nothing half-done."""

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
from personas.memories.services import create_memory
from personas.records.services import edit_record
from prompts.assembly.inputs import Text
from prompts.builds import services as builds_services
from prompts.builds.compiler import compile_prompt
from prompts.builds.publish import BuildAuthor, publish_versions
from prompts.builds.services import lock_or_create_prompts, rebuild_agents
from prompts.erasure.services import erase_record
from prompts.hashed_rows import build_label_move_row, build_version_row
from prompts.inputs import CollectedInputs, collect_inputs
from prompts.labels.services import roll_back
from prompts.models import AgentPrompt, LabelMove, PromptLabel, PromptVersion
from prompts.releases.services import approve_release, request_release, run_release
from tests.factories import BY, make_agent, make_channel, make_memory, make_soul

pytestmark = pytest.mark.django_db(transaction=True)

WRITERS = 16


@pytest.fixture
def deck(workspace):
    return make_channel(workspace, "deck")


@pytest.fixture
def soul(workspace):
    return make_soul(workspace, text="Be brave.")


@pytest.fixture
def pilot(workspace, deck, soul):
    return make_agent(workspace, "pilot", soul=soul, channels=[deck])


def gathered_once(agent) -> CollectedInputs:
    [gathered] = collect_inputs(agent.workspace_id, [agent], at=timezone.now())
    return gathered


def publish_words(gathered: CollectedInputs, words: str) -> None:
    """One more version that says these words, through the same lock and the same verb as every build."""
    agent = gathered.agent
    made = compile_prompt(replace(gathered, inputs=replace(gathered.inputs, soul=Text(words))))
    with transaction.atomic():
        [prompt] = lock_or_create_prompts(agent.workspace_id, [agent.pk]).values()
        publish_versions(agent.workspace_id, [(prompt, made, BuildAuthor("test"))], at=timezone.now())
        prompt.save()
    # Back to the pool, as at a request's end: there are more writers than connections.
    connection.close()


def publish_in_turn(gathered: CollectedInputs, words: str) -> None:
    """SQLite keeps no queue: who has waited in vain has written nothing, and comes again."""
    while True:
        try:
            return publish_words(gathered, words)
        except OperationalError as error:
            connection.close()
            if connection.vendor != "sqlite" or "locked" not in str(error):
                raise


def all_at_once(count: int, work: Callable[[int], None]) -> list[BaseException]:
    errors: list[BaseException] = []
    gate = threading.Barrier(count)

    def run(place: int) -> None:
        try:
            gate.wait(20)
            work(place)
        except BaseException as error:  # noqa: BLE001  # told to the test
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(place,)) for place in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return errors


def faults_of(prompt: AgentPrompt) -> list[str]:
    """Whatever is not 1…n, or does not follow from the row before it."""
    found, previous = [], ""
    rows = PromptVersion.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt).order_by("number")
    for place, version in enumerate(rows.select_related("prompt"), start=1):
        if version.number != place or version.previous_hash != previous:
            found.append(f"version {version.number} at place {place}")
        if build_version_row(version).hash(previous) != version.hash:
            found.append(f"hash of version {version.number}")
        previous = version.hash
    prompt.refresh_from_db()
    if (prompt.last_number, prompt.last_hash) != (rows.count(), previous):
        found.append("the head")
    return found


@pytest.mark.promise("R3")
@pytest.mark.parametrize("each", [2, pytest.param(50, marks=pytest.mark.hard)])
def test_sixteen_writers_publish_without_a_gap(pilot, each, record_property):
    gathered = gathered_once(pilot)

    def write(place: int) -> None:
        for turn in range(each):
            publish_in_turn(gathered, f"Be {place} and {turn}.")

    assert all_at_once(WRITERS, write) == []
    prompt = AgentPrompt.objects.in_workspace(pilot.workspace_id).get(agent=pilot)
    assert prompt.last_number == 1 + WRITERS * each
    digests = PromptVersion.objects.in_workspace(pilot.workspace_id).values_list("digest", flat=True)
    assert len(set(digests)) == 1 + WRITERS * each
    assert faults_of(prompt) == []
    record_property("measured", f"{WRITERS} writers, {prompt.last_number:,} versions, no gap, none twice")


@pytest.mark.promise("R3")
@pytest.mark.planted
def test_without_the_lock_numbers_collide(pilot, monkeypatch):
    """The fault: the prompt is read but not held."""
    if connection.vendor == "sqlite":
        pytest.skip("SQLite lets one writer in at a time, lock or no lock")
    monkeypatch.setattr("django.db.models.query.QuerySet.select_for_update", lambda self, **_: self.all())
    gathered = gathered_once(pilot)

    def write(place: int) -> None:
        for turn in range(10):
            publish_words(gathered, f"Be {place} and {turn}.")

    errors = all_at_once(WRITERS, write)
    prompt = AgentPrompt.objects.in_workspace(pilot.workspace_id).get(agent=pilot)
    assert errors or faults_of(prompt)


class Broken(DatabaseError):
    """The fault that is planted at statement N."""


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


def state_of(workspace) -> tuple[Any, ...]:
    """All that could show a half-done verb, and whether every label and chain holds."""
    prompts = list(AgentPrompt.objects.in_workspace(workspace).order_by("pk"))
    labels = PromptLabel.objects.in_workspace(workspace).order_by("pk")
    moves = LabelMove.objects.in_workspace(workspace).select_related("prompt").order_by("prompt", "sequence")
    assert [fault for prompt in prompts for fault in faults_of(prompt)] == []
    assert all(build_label_move_row(move).hash(move.previous_hash) == move.hash for move in moves)
    return (
        [(row.last_number, row.latest_id, row.last_move, row.is_held, row.is_live) for row in prompts],
        list(labels.values_list("prompt_id", "name", "version_id")),
        moves.count(),
        PromptVersion.objects.in_workspace(workspace).count(),
    )


def each_statement_fails(workspace, verb: Callable[[], Any], most: int = 400) -> int:
    """Fail the verb at its first statement, its second and so on, until it passes; then it has worked."""
    before = state_of(workspace)
    for number in range(1, most):
        try:
            with failing_at(number):
                verb()
        except Broken:
            assert state_of(workspace) == before, f"half-done after statement {number}"
            continue
        assert state_of(workspace) != before
        return number
    raise AssertionError("it never passed")


@pytest.fixture
def still(settings, monkeypatch):
    """No build after the commit: the verb under test is asked alone."""
    monkeypatch.setattr("prompts.receivers.build_or_enqueue", lambda *_: None)


@pytest.mark.hard
@pytest.mark.promise("R14")
def test_a_rebuild_that_fails_anywhere_shows_nothing(pilot, soul, workspace, still):
    edit_record(soul, {"text": "Be wise."}, expected=soul.revision, by=BY)
    assert each_statement_fails(workspace, lambda: rebuild_agents(workspace, [pilot.pk])) > 10


@pytest.mark.promise("R14")
def test_a_rollback_that_fails_anywhere_shows_nothing(pilot, soul, workspace, alice):
    edit_record(soul, {"text": "Be wise."}, expected=soul.revision, by=BY)
    prompt = AgentPrompt.objects.in_workspace(workspace).get(agent=pilot)
    by = Actor.person(alice)
    assert each_statement_fails(workspace, lambda: roll_back([prompt], by=by, note="Back.")) > 5


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
    passed = each_statement_fails(workspace, lambda: run_release(release, by=Actor.person(alice)))
    assert passed > 5
    assert PromptLabel.objects.in_workspace(workspace).filter(name="production").count() == 3


@pytest.mark.hard
@pytest.mark.promise("R14")
def test_an_erasure_that_fails_anywhere_shows_nothing(pilot, workspace, alice, still):
    memory = make_memory(workspace, "The cook is called Rosamund.")
    rebuild_agents(workspace, [pilot.pk])
    verb = lambda: erase_record(memory, reason="Asked for.", by=Actor.person(alice))  # noqa: E731  # read once
    assert each_statement_fails(workspace, verb) > 10


@pytest.mark.planted
@pytest.mark.promise("R14")
def test_a_verb_that_is_not_all_or_nothing_is_found(pilot, soul, workspace, alice):
    """The fault: each statement stands by itself."""
    edit_record(soul, {"text": "Be wise."}, expected=soul.revision, by=BY)
    prompt = AgentPrompt.objects.in_workspace(workspace).get(agent=pilot)
    step_by_step: Any = vars(roll_back)["__wrapped__"]
    with pytest.raises((AssertionError, TransactionManagementError)):
        each_statement_fails(workspace, lambda: step_by_step([prompt], by=Actor.person(alice), note="Back."))


def test_an_edit_is_kept_although_its_build_fails(pilot, workspace, monkeypatch):
    """What was saved is saved; the cause stays, and the next build takes it in."""

    def broken(*_: Any, **__: Any) -> None:
        raise DatabaseError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(builds_services, "publish_versions", broken)
        create_memory(workspace, {"text": "The harbour closes at nine."}, by=BY)
    assert PromptVersion.objects.in_workspace(workspace).count() == 1
    rebuild_agents(workspace, [pilot.pk])
    assert PromptVersion.objects.in_workspace(workspace).count() == 2
