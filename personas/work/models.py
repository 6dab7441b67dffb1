"""Models of responsibilities, tasks and task steps."""

from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _

from core.db.fields import LineField, ProseField
from personas.agents.models import Agent
from personas.records.models import Record
from personas.tenancy.fields import TenantForeignKey
from personas.tenancy.models import WorkspaceOwned


class Responsibility(Record):
    """A permanent duty of one agent. Bots refer to it by its title, because prompts contain no ids."""

    kind = "responsibility"
    content = ("agent", "title", "text", "position")

    agent = TenantForeignKey(Agent, on_delete=models.PROTECT, related_name="responsibilities")
    title = LineField(max_length=120)
    text = ProseField(max_length=20_000)
    position = models.PositiveIntegerField(default=0)

    class Meta(Record.Meta):
        ordering = ["position", "id"]
        verbose_name_plural = "responsibilities"
        constraints = [
            models.UniqueConstraint(
                fields=["agent", "title"],
                condition=models.Q(archived_at=None),
                name="responsibility_title_once_per_agent",
                violation_error_message=_("This agent already has a responsibility with this title."),
            ),
        ]

    def __str__(self) -> str:
        return self.title

    def agent_ids(self) -> list[int]:
        return [self.agent_id]


class TaskStatus(models.TextChoices):
    """Progress of a task."""

    OPEN = "open", _("Open")
    IN_PROGRESS = "in_progress", _("In progress")
    BLOCKED = "blocked", _("Blocked")
    DONE = "done", _("Done")
    CANCELLED = "cancelled", _("Cancelled")


class Task(Record):
    """A task with ordered steps. Each workspace numbers its tasks from 1."""

    kind = "task"
    content = ("title", "description", "status", "agent")

    number = models.PositiveIntegerField(editable=False)
    title = LineField(max_length=120)
    description = ProseField(max_length=20_000, blank=True)
    status = models.CharField(max_length=12, choices=TaskStatus.choices, default=TaskStatus.OPEN)
    agent = TenantForeignKey(Agent, null=True, blank=True, on_delete=models.PROTECT, related_name="tasks")

    class Meta(Record.Meta):
        constraints = [
            models.UniqueConstraint(fields=["workspace", "number"], name="task_number_once"),
            models.CheckConstraint(
                condition=models.Q(status__in=TaskStatus.values), name="task_status_known"
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.number} {self.title}"

    @property
    def done_count(self) -> int:
        return sum(step.is_done for step in self.steps.all())

    def snapshot(self) -> dict[str, Any]:
        steps = self.steps.all() if self.pk else []
        return super().snapshot() | {
            "steps": [{"title": step.title, "is_done": step.is_done} for step in steps]
        }

    def values_from_snapshot(self, data: dict[str, Any]) -> dict[str, Any]:
        return super().values_from_snapshot(data) | {"steps": data["steps"]}

    def save_children(self, values: dict[str, Any]) -> None:
        if "steps" not in values:
            return
        self.steps.all().delete()
        for position, step in enumerate(values["steps"]):
            row = TaskStep(workspace_id=self.workspace_id, task=self, position=position, **step)
            row.full_clean()
            row.save()


class TaskStep(WorkspaceOwned):
    """One step of a task, with its position."""

    task = TenantForeignKey(Task, on_delete=models.CASCADE, related_name="steps")
    title = LineField(max_length=300)
    is_done = models.BooleanField(default=False)
    position = models.PositiveIntegerField()

    class Meta(WorkspaceOwned.Meta):
        ordering = ["position", "id"]
        constraints = [models.UniqueConstraint(fields=["task", "position"], name="one_step_per_place")]

    def __str__(self) -> str:
        return self.title
