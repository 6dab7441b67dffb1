"""Forms of memories."""

from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.text.shorten import shorten_text
from personas.models import Memory, MemoryStatus
from personas.records.forms import RecordChoiceField, RecordForm
from personas.selectors import list_agents

MAX_CHOICE_LENGTH = 200
NEW_STATUS_CHOICES = [
    (MemoryStatus.ACTIVE.value, _("Active: used in prompts immediately")),
    (MemoryStatus.PROPOSED.value, _("Proposed: needs approval first")),
]


class MemoryForm(RecordForm):
    model = Memory
    model_fields = ("text", "source", "valid_from", "valid_until")
    editors = {"text": "markdown"}
    fixed = ("status",)
    widgets = {
        "valid_from": forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        "valid_until": forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    }
    help_texts = {
        "text": _("One fact, in a sentence or two."),
        "source": _("Where the memory comes from, such as a person, a document or a conversation."),
        "valid_from": _("In your time zone. Leave empty for no start date."),
        "valid_until": _("In your time zone. Leave empty for no end date."),
    }
    fieldsets = (
        (_("Memory"), "", ("text", "agent", "status")),
        (
            _("Details"),
            _("Where the memory comes from and when it is valid."),
            ("source", "valid_from", "valid_until"),
        ),
    )

    agent = RecordChoiceField(
        required=False, empty_label=_("All agents in this workspace"), label=_("Visible to")
    )
    status = forms.ChoiceField(choices=NEW_STATUS_CHOICES, initial=MemoryStatus.ACTIVE.value)

    record: Memory | None

    def set_querysets(self) -> None:
        self.set_choices(
            "agent",
            list_agents(self.workspace).prefetch_related(None),
            self.record.agent if self.record else None,
        )


class MemoryChoiceField(RecordChoiceField):
    """Choice of a memory by its text."""

    def label_from_instance(self, obj: Any) -> str:
        return shorten_text(" ".join(obj.text.split()), MAX_CHOICE_LENGTH)


class SuccessorForm(forms.Form):
    """Form with one field: the memory that supersedes the memory shown on the page."""

    def __init__(self, data: Any = None, *, rows: QuerySet[Memory]) -> None:
        super().__init__(data)
        self.successor = MemoryChoiceField(
            label=gettext("Replace with"), empty_label=gettext("Choose a replacement")
        )
        self.successor.set_choices(rows)
        self.fields["successor"] = self.successor
