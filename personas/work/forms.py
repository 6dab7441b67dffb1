"""Forms of responsibilities and tasks."""

from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from personas.models import Responsibility, Task
from personas.records.forms import RecordChoiceField, RecordForm
from personas.selectors import list_agents

DONE_MARK, OPEN_MARK = "[x]", "[ ]"


class ResponsibilityForm(RecordForm):
    model = Responsibility
    model_fields = ("title", "text")
    editors = {"text": "markdown"}
    fixed = ("agent",)
    help_texts = {
        "title": _("The agent refers to the responsibility by this title."),
        "text": _("What the agent must do and when it counts as done, in Markdown."),
    }
    fieldsets = (
        (_("Responsibility"), _("Something that one agent must always do."), ("agent", "title", "text")),
    )

    agent = RecordChoiceField(empty_label=_("Choose an agent"))

    def set_querysets(self) -> None:
        self.set_choices("agent", list_agents(self.workspace).prefetch_related(None))


class TaskForm(RecordForm):
    model = Task
    model_fields = ("title", "description", "status")
    editors = {"description": "markdown"}
    help_texts = {"description": _("What the result should be, in Markdown.")}
    fieldsets = (
        (_("Task"), "", ("title", "description", "status", "agent")),
        (_("Steps"), "", ("steps",)),
    )

    agent = RecordChoiceField(required=False, empty_label=_("Not assigned"), label=_("Assigned to"))
    steps = forms.CharField(
        required=False,
        max_length=30_000,
        widget=forms.Textarea,
        help_text=_("One step per line, in order. Start a line with [x] to mark the step as done."),
    )

    record: Task | None

    def initial_values(self) -> dict[str, Any]:
        if self.record is None:
            return {}
        steps = self.record.steps.all()
        lines = [f"{DONE_MARK if step.is_done else OPEN_MARK} {step.title}" for step in steps]
        return super().initial_values() | {"steps": "\n".join(lines)}

    def set_querysets(self) -> None:
        self.set_choices(
            "agent",
            list_agents(self.workspace).prefetch_related(None),
            self.record.agent if self.record else None,
        )

    def clean_steps(self) -> list[dict[str, Any]]:
        """Parse one step per line. A list marker or checkbox such as `- [ ]` is removed from the title."""
        lines = [line.strip().removeprefix("- ") for line in self.cleaned_data["steps"].splitlines()]
        steps = [parse_step(line) for line in lines if line]
        for number, step in enumerate(steps, start=1):
            if not step["title"]:
                raise forms.ValidationError(
                    gettext("Step %(number)s has no text. Enter its text or delete the line.")
                    % {"number": number}
                )
            if len(step["title"]) > 300:
                raise forms.ValidationError(
                    gettext("Step %(number)s has more than 300 characters. Shorten it.") % {"number": number}
                )
        return steps


def parse_step(line: str) -> dict[str, Any]:
    is_done = line.lower().startswith(DONE_MARK)
    title = line[3:] if is_done or line.startswith(OPEN_MARK) else line
    return {"title": title.strip(), "is_done": is_done}
