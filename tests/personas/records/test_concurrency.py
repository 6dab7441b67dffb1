"""Several people at the same moment, on real connections with real commits."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from personas.actors import Actor
from personas.errors import DomainError, EditConflict, InvalidInput
from personas.members.services import change_role, remove_member
from personas.models import Membership, Revision, Soul, Task
from personas.records.services import edit_record
from personas.roles import Role
from personas.work.services import create_task
from tests.factories import BY, make_soul, make_tool

pytestmark = pytest.mark.django_db(transaction=True)


def at_once(*verbs: Callable[[], Any]) -> list[Any]:
    """Run the verbs together; each gives its result or the refusal it met."""
    gate = threading.Barrier(len(verbs))
    results: list[Any] = [None] * len(verbs)

    def run(place: int) -> None:
        try:
            gate.wait(10)
            results[place] = verbs[place]()
        except DomainError as refused:
            results[place] = refused
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(verbs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return results


def test_of_two_simultaneous_edits_one_wins_and_the_other_is_told(workspace):
    soul = make_soul(workspace, text="Start")
    texts = [f"Text {number}" for number in range(6)]
    results = at_once(
        *(lambda text=text: edit_record(soul, {"text": text}, expected=1, by=BY) for text in texts)
    )
    won = [result for result in results if isinstance(result, Soul)]
    assert len(won) == 1
    assert sum(isinstance(result, EditConflict) for result in results) == 5
    assert Soul.objects.in_workspace(workspace).get().text == won[0].text
    assert Revision.objects.in_workspace(workspace).filter(kind="soul").count() == 2


def test_task_numbers_are_gapless_under_concurrency(workspace):
    at_once(*(lambda: [create_task(workspace, {"title": "T"}, by=BY) for _ in range(5)] for _ in range(6)))
    numbers = Task.objects.in_workspace(workspace).order_by("number").values_list("number", flat=True)
    assert list(numbers) == list(range(1, 31))


def test_two_owners_who_leave_at_once_do_not_both_succeed(workspace, alice, bob):
    members = Membership.objects.in_workspace(workspace)
    change_role(members.get(user=bob), Role.OWNER, by=BY)
    leaving = [members.get(user=alice), members.get(user=bob)]
    at_once(*(lambda one=one: remove_member(one, by=Actor.person(one.user)) for one in leaving))
    assert members.filter(role=Role.OWNER).count() == 1


def test_of_two_who_take_the_same_name_at_once_one_is_told(workspace):
    results = at_once(*(lambda: make_tool(workspace, "search") for _ in range(4)))
    assert sum(isinstance(result, InvalidInput) for result in results) == 3
