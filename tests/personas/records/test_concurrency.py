"""Concurrent services in threads, with real connections and commits."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from personas.actors import Actor
from personas.errors import DomainError, EditConflict, InvalidInput
from personas.members.services import change_role, remove_member
from personas.models import Membership, Revision, Soul, Task
from personas.records.services import edit_record
from personas.roles import Role
from personas.work.services import create_task
from tests.database_locks import patient_connection
from tests.factories import BY, make_soul, make_tool

pytestmark = pytest.mark.django_db(transaction=True)


def run_concurrently(*actions: Callable[[], Any]) -> list[Any]:
    """Run the actions in threads at the same time; return the result or `DomainError` of each."""
    barrier = threading.Barrier(len(actions))
    results: list[Any] = [None] * len(actions)

    def run(index: int) -> None:
        barrier.wait(60)
        with patient_connection():
            try:
                results[index] = actions[index]()
            except DomainError as error:
                results[index] = error

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(actions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


def test_of_simultaneous_edits_one_succeeds_and_the_others_conflict(workspace):
    soul = make_soul(workspace, text="Start")
    texts = [f"Text {number}" for number in range(6)]
    results = run_concurrently(
        *(lambda text=text: edit_record(soul, {"text": text}, expected=1, by=BY) for text in texts)
    )
    saved = [result for result in results if isinstance(result, Soul)]
    assert len(saved) == 1
    assert sum(isinstance(result, EditConflict) for result in results) == 5
    assert Soul.objects.in_workspace(workspace).get().text == saved[0].text
    assert Revision.objects.in_workspace(workspace).filter(kind="soul").count() == 2


@pytest.mark.slow
def test_task_numbers_are_gapless_under_concurrency(workspace):
    run_concurrently(
        *(lambda: [create_task(workspace, {"title": "T"}, by=BY) for _ in range(5)] for _ in range(6))
    )
    numbers = Task.objects.in_workspace(workspace).order_by("number").values_list("number", flat=True)
    assert list(numbers) == list(range(1, 31))


def test_two_owners_who_leave_at_once_do_not_both_succeed(workspace, alice, bob):
    members = Membership.objects.in_workspace(workspace)
    change_role(members.get(user=bob), Role.OWNER, by=BY)
    leaving = [members.get(user=alice), members.get(user=bob)]
    run_concurrently(*(lambda one=one: remove_member(one, by=Actor.person(one.user)) for one in leaving))
    assert members.filter(role=Role.OWNER).count() == 1


def test_of_simultaneous_creations_with_one_name_one_succeeds(workspace):
    results = run_concurrently(*(lambda: make_tool(workspace, "search") for _ in range(4)))
    assert sum(isinstance(result, InvalidInput) for result in results) == 3
