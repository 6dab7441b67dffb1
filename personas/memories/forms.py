"""Forms of memories."""

from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from personas.models import Memory, MemoryState
from personas.records.forms import RecordChoiceField, RecordForm
from personas.selectors import list_agents

NEW_STATE_CHOICES = [
    (MemoryState.ACTIVE.value, _("Active: reaches prompts at once")),
    (MemoryState.PROPOSED.value, _("Proposed: someone approves it first")),
]


class MemoryForm(RecordForm):
    model = Memory
    model_fields = ("text", "source", "valid_from", "valid_until")
    editors = {"text": "markdown"}
    fixed = ("state",)
    widgets = {
        "valid_from": forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        "valid_until": forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    }
    help_texts = {
        "text": _("One fact, in a sentence or two."),
        "source": _("Where it comes from: a person, a document, a conversation."),
        "valid_from": _("In your timezone. Left empty: from the start."),
        "valid_until": _("In your timezone. Left empty: until further notice."),
    }
    fieldsets = (
        (_("Memory"), "", ("text", "agent", "state")),
        (
            _("Standing"),
            _("Who says so, and for how long it holds."),
            ("source", "valid_from", "valid_until"),
        ),
    )

    agent = RecordChoiceField(
        required=False, empty_label=_("Every agent of this workspace"), label=_("Known to")
    )
    state = forms.ChoiceField(choices=NEW_STATE_CHOICES, initial=MemoryState.ACTIVE.value)

    record: Memory | None

    def set_querysets(self) -> None:
        self.set_choices(
            "agent",
            list_agents(self.workspace).prefetch_related(None),
            self.record.agent if self.record else None,
        )


class SuccessorForm(forms.Form):
    """Form with one field: the memory that supersedes the memory shown on the page."""

    def __init__(self, data: Any = None, *, rows: QuerySet[Memory]) -> None:
        super().__init__(data)
        self.successor = RecordChoiceField(
            label=gettext("Replace by"), empty_label=gettext("Choose the memory that holds now")
        )
        self.successor.set_choices(rows)
        self.fields["successor"] = self.successor
