"""Create and order responsibilities, create tasks and mark their steps."""

from collections.abc import Sequence
from typing import Literal

from django.db import transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from personas.actors import Actor
from personas.errors import DomainError
from personas.models import Agent, Responsibility, Task, TaskStatus, Workspace
from personas.records.services import FieldValues, create_record, edit_record, lock_record


@transaction.atomic
def add_responsibility(
    workspace: Workspace, values: FieldValues, *, by: Actor, message: str = ""
) -> Responsibility:
    """Create a responsibility at the end of the agent's list of responsibilities."""
    agent = lock_record(values["agent"])
    last = agent.responsibilities.aggregate(last=Max("position"))["last"]
    position = 0 if last is None else last + 1
    return create_record(Responsibility, workspace, values | {"position": position}, by=by, message=message)


@transaction.atomic
def move_responsibility(
    responsibility: Responsibility, direction: Literal["up", "down"], *, by: Actor
) -> None:
    """Swap a responsibility with the one above or below it. Do nothing if there is none."""
    agent = lock_record(responsibility.agent)
    responsibilities = list(agent.responsibilities.filter(archived_at=None))
    index = [row.pk for row in responsibilities].index(responsibility.pk)
    target = index + (1 if direction == "down" else -1)
    if not 0 <= target < len(responsibilities):
        return
    responsibilities[index], responsibilities[target] = responsibilities[target], responsibilities[index]
    renumber_responsibilities(responsibilities, f"Moved {direction}", by=by)


@transaction.atomic
def order_responsibilities(agent: Agent, order: Sequence[int], *, by: Actor) -> None:
    """Reorder an agent's responsibilities. `order` must contain the id of each active one exactly once."""
    agent = lock_record(agent)
    responsibilities = {row.pk: row for row in agent.responsibilities.filter(archived_at=None)}
    if sorted(order) != sorted(responsibilities):
        raise DomainError(
            _(
                "The list must contain each of the agent's active responsibilities "
                "exactly once. Reload it, then sort again."
            )
        )
    renumber_responsibilities([responsibilities[pk] for pk in order], "Put in order", by=by)


def renumber_responsibilities(responsibilities: Sequence[Responsibility], message: str, *, by: Actor) -> None:
    """Set the positions of the responsibilities to 0, 1, 2, … in the given order.

    All are renumbered, because a restored responsibility may have the same position as another one.
    """
    for position, row in enumerate(responsibilities):
        if row.position != position:
            edit_record(
                row, {"position": position}, expected=row.revision, by=by, message=message, verb="moved"
            )


@transaction.atomic
def create_task(workspace: Workspace, values: FieldValues, *, by: Actor, message: str = "") -> Task:
    """Create a task with the workspace's next task number."""
    # The lock on the workspace row serializes concurrent calls, so that task numbers are unique and have no
    # gaps.
    counter = Workspace.objects.select_for_update().get(pk=workspace.pk)
    counter.last_task_number += 1
    counter.save(update_fields=["last_task_number"])
    numbered = values | {"number": counter.last_task_number}
    return create_record(Task, workspace, numbered, by=by, message=message)


@transaction.atomic
def tick_step(task: Task, position: int, *, is_done: bool, by: Actor) -> Task:
    """Mark one step as done or open. Marking a step as done changes an open task to in progress."""
    task = lock_record(task)
    steps = task.snapshot()["steps"]
    if not 0 <= position < len(steps):
        raise DomainError(
            _("Task #%(number)s has no step %(step)s.") % {"number": task.number, "step": position + 1}
        )
    steps[position]["is_done"] = is_done
    values: FieldValues = {"steps": steps}
    if is_done and task.status == TaskStatus.OPEN:
        values["status"] = TaskStatus.IN_PROGRESS
    prefix = "Done" if is_done else "Reopened"
    message = f"{prefix}: {steps[position]['title']}"[:200]
    verb = "completed" if is_done else "reopened"
    return edit_record(task, values, expected=task.revision, by=by, message=message, verb=verb)
