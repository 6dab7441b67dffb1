"""Order of responsibilities; numbers and steps of tasks."""

import pytest

from personas.errors import DomainError, InvalidInput
from personas.models import Responsibility, TaskStatus
from personas.records.services import archive_record, restore_record
from personas.work.services import move_responsibility, tick_step
from tests.factories import make_agent, make_responsibility, make_task
from tests.shared_cast import (  # noqa: F401  # fixtures
    shared_alice,
    shared_as_alice,
    shared_as_bob,
    shared_as_mallory,
    shared_bob,
    shared_cast,
    shared_elsewhere,
    shared_mallory,
    shared_workspace,
)


def list_titles(agent):
    return list(agent.responsibilities.filter(archived_at=None).values_list("title", flat=True))


def test_responsibilities_keep_the_order_of_creation(agent):
    for title in ("Zulu", "Alpha", "Mike"):
        make_responsibility(agent, title)
    assert list_titles(agent) == ["Zulu", "Alpha", "Mike"]


def test_a_responsibility_moves_past_its_neighbour_and_stops_at_the_ends(agent, by_alice):
    first, second, third = (make_responsibility(agent, title) for title in ("One", "Two", "Three"))
    move_responsibility(third, "up", by=by_alice)
    assert list_titles(agent) == ["One", "Three", "Two"]
    move_responsibility(first, "up", by=by_alice)
    move_responsibility(second, "down", by=by_alice)
    assert list_titles(agent) == ["One", "Three", "Two"]


def test_a_title_is_unique_among_active_responsibilities(agent, by_alice):
    responsibility = make_responsibility(agent, "Route")
    with pytest.raises(InvalidInput, match="already has a responsibility with this title"):
        make_responsibility(agent, "Route")
    archive_record(responsibility, by=by_alice)
    make_responsibility(agent, "Route")
    with pytest.raises(InvalidInput, match="already has a responsibility"):
        restore_record(responsibility, by=by_alice)


def test_two_agents_may_have_responsibilities_with_the_same_title(workspace, agent):
    make_responsibility(agent, "Route")
    make_responsibility(make_agent(workspace), "Route")
    assert Responsibility.objects.in_workspace(workspace).filter(title="Route").count() == 2


def test_tasks_are_numbered_per_workspace(workspace, elsewhere):
    assert [make_task(workspace).number, make_task(workspace).number] == [1, 2]
    assert make_task(elsewhere).number == 1


def test_the_first_completed_step_moves_a_task_to_in_progress(workspace, by_alice):
    steps = [{"title": "Sweep", "is_done": False}, {"title": "Paint", "is_done": False}]
    task = make_task(workspace, steps=steps)
    task = tick_step(task, 0, is_done=True, by=by_alice)
    assert (task.status, task.done_count, task.revision) == (TaskStatus.IN_PROGRESS, 1, 2)
    task = tick_step(task, 0, is_done=False, by=by_alice)
    assert (task.status, task.done_count) == (TaskStatus.IN_PROGRESS, 0)


def test_a_missing_step_cannot_be_completed(workspace, by_alice):
    with pytest.raises(DomainError, match="no step 1"):
        tick_step(make_task(workspace), 0, is_done=True, by=by_alice)


def test_steps_are_parsed_from_lines_with_check_boxes(workspace, as_bob):
    lines = "[x] Sweep\n- [ ] Paint\n\nPolish"
    answer = as_bob.post(
        f"/w/{workspace.slug}/tasks/new/", {"title": "Shed", "status": "open", "steps": lines}
    )
    assert answer.status_code == 302
    task = make_task(workspace, "Other")
    first = type(task).objects.in_workspace(workspace).get(number=1)
    assert [(step.title, step.is_done) for step in first.steps.all()] == [
        ("Sweep", True),
        ("Paint", False),
        ("Polish", False),
    ]
