"""Concurrent moves of one label: one wins, the others get a conflict."""

import threading
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from django.db import connection

from prompts.errors import LabelConflict
from prompts.models import PRODUCTION, AgentPrompt, LabelMove, PromptLabel
from prompts.proof_rows import build_label_move_row
from prompts.publishing.labels.move_queries import query_locked_rows
from prompts.publishing.labels.services import apply_label_moves, move_label, roll_back
from tests.compiled_queries import compile_again
from tests.database_locks import patient_connection
from tests.factories import make_soul
from tests.prompts.test_bad_input import make_prompt, numbered, reword

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def soul(workspace):
    return make_soul(workspace, text="Be brave.")


@pytest.fixture
def quick(workspace, soul) -> Any:
    """An automatic agent's prompt with two versions."""
    return make_prompt(workspace, "quick", soul, "automatic")


def run_concurrently(*actions: Callable[[], object]) -> list[BaseException]:
    """Run the actions in threads that start together, and return their exceptions."""
    errors: list[BaseException] = []
    gate = threading.Barrier(len(actions))

    def run(action: Callable[[], object]) -> None:
        try:
            gate.wait(60)
            with patient_connection():
                action()
        except BaseException as error:  # noqa: BLE001  # reported by the test
            errors.append(error)

    threads = [threading.Thread(target=run, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return errors


def list_broken_moves(prompt: AgentPrompt) -> list[str]:
    """Return the moves that break the hash chain."""
    broken, previous = [], ""
    rows = LabelMove.unscoped.filter(prompt=prompt).order_by("sequence")
    for sequence, move in enumerate(rows.select_related("prompt", "version", "previous_version"), 1):
        if (
            move.sequence != sequence
            or move.previous_hash != previous
            or build_label_move_row(move).hash(previous) != move.hash
        ):
            broken.append(f"move {move.sequence}")
        previous = move.hash
    return broken


def race(prompt: AgentPrompt, by: Any) -> list[BaseException]:
    """Move a label from version 1 to 2 in eight threads that all saw it at version 1."""
    first, second = numbered(prompt, 1), numbered(prompt, 2)
    move_label(prompt, "canary", first, expected=None, by=by)

    def action() -> None:
        move_label(prompt, "canary", second, expected=first.pk, by=by)

    return run_concurrently(*[action] * 8)


def test_of_concurrent_label_moves_one_wins_and_the_others_get_a_conflict(quick, by_alice):
    errors = race(quick, by_alice)
    assert [type(error) for error in errors] == [LabelConflict] * 7
    assert "moved after you opened this page" in str(errors[0])
    assert LabelMove.unscoped.filter(prompt=quick, label="canary").count() == 2
    assert PromptLabel.unscoped.get(name="canary").version.number == 2
    assert list_broken_moves(quick) == []


def test_a_roll_back_pressed_twice_at_once_goes_one_step_back(quick, soul, by_alice):
    reword(soul)
    places = {quick.pk: (numbered(quick, 3).pk, numbered(quick, 2).pk)}

    def action() -> None:
        roll_back([quick], by=by_alice, note="Too wise.", expected=places)

    errors = run_concurrently(*[action] * 4)
    assert [type(error) for error in errors] == [LabelConflict] * 3
    assert PromptLabel.unscoped.get(prompt=quick, name=PRODUCTION).version.number == 2


@pytest.mark.planted
def test_without_the_lock_concurrent_moves_are_not_rejected_cleanly(quick, by_alice, monkeypatch):
    """Planted fault: the prompt is read but not locked."""
    if connection.vendor == "sqlite":
        pytest.skip("SQLite lets one writer in at a time, lock or no lock")
    monkeypatch.setattr("django.db.models.query.QuerySet.select_for_update", lambda self, **_: self.all())
    compile_again(monkeypatch, query_locked_rows)

    readers = count(1)
    second_has_read = threading.Event()

    def apply_later(*args: Any, **options: Any) -> Any:
        """Wait until another thread has read the label too. The first move is the one that creates it."""
        number = next(readers)
        if number > 2:
            second_has_read.set()
        if number > 1:
            second_has_read.wait(60)
        return apply_label_moves(*args, **options)

    monkeypatch.setattr("prompts.publishing.labels.services.apply_label_moves", apply_later)
    errors = race(quick, by_alice)
    assert [type(error) for error in errors] != [LabelConflict] * 7 or list_broken_moves(quick)
