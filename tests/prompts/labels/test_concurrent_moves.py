"""Several people move one label at the same moment: one wins, and the others are told."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from prompts.errors import LabelConflict
from prompts.hashed_rows import build_label_move_row
from prompts.labels.services import move_label, roll_back
from prompts.models import PRODUCTION, AgentPrompt, LabelMove, PromptLabel
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


def at_once(*verbs: Callable[[], object]) -> list[BaseException]:
    """All verbs in threads of their own, begun together; what they raised."""
    errors: list[BaseException] = []
    gate = threading.Barrier(len(verbs))

    def run(verb: Callable[[], object]) -> None:
        try:
            gate.wait(20)
            verb()
        except BaseException as error:  # noqa: BLE001  # told to the test
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(verb,)) for verb in verbs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return errors


def chain_of(prompt: AgentPrompt) -> list[str]:
    """The moves that do not follow from the one before."""
    found, previous = [], ""
    rows = LabelMove.unscoped.filter(prompt=prompt).order_by("sequence")
    for place, move in enumerate(rows.select_related("prompt", "version", "previous_version"), 1):
        if (
            move.sequence != place
            or move.previous_hash != previous
            or build_label_move_row(move).hash(previous) != move.hash
        ):
            found.append(f"move {move.sequence}")
        previous = move.hash
    return found


def race(prompt: AgentPrompt, by: Any) -> list[BaseException]:
    """Eight people, all of whom saw the label at version 1, move it to 2."""
    first, second = numbered(prompt, 1), numbered(prompt, 2)
    move_label(prompt, "canary", first, expected=None, by=by)

    def verb() -> None:
        move_label(prompt, "canary", second, expected=first.pk, by=by)

    return at_once(*[verb] * 8)


def test_of_label_moves_that_race_one_wins_and_the_others_are_told(quick, by_alice):
    errors = race(quick, by_alice)
    assert [type(error) for error in errors] == [LabelConflict] * 7
    assert "was moved after you looked" in str(errors[0])
    assert LabelMove.unscoped.filter(prompt=quick, label="canary").count() == 2
    assert PromptLabel.unscoped.get(name="canary").version.number == 2
    assert chain_of(quick) == []


def test_a_roll_back_pressed_twice_at_once_goes_one_step_back(quick, soul, by_alice):
    reword(soul)
    places = {quick.pk: (numbered(quick, 3).pk, numbered(quick, 2).pk)}

    def verb() -> None:
        roll_back([quick], by=by_alice, note="Too wise.", expected=places)

    errors = at_once(*[verb] * 4)
    assert [type(error) for error in errors] == [LabelConflict] * 3
    assert PromptLabel.unscoped.get(prompt=quick, name=PRODUCTION).version.number == 2


@pytest.mark.planted
def test_without_the_lock_a_race_is_not_refused_in_words(quick, by_alice, monkeypatch):
    """The fault: the prompt is read but not held."""
    if connection.vendor == "sqlite":
        pytest.skip("SQLite lets one writer in at a time, lock or no lock")
    monkeypatch.setattr("django.db.models.query.QuerySet.select_for_update", lambda self, **_: self.all())
    errors = race(quick, by_alice)
    assert [type(error) for error in errors] != [LabelConflict] * 7 or chain_of(quick)
