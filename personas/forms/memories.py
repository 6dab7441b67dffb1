"""Facts that agents know."""

from typing import Any

from django import forms
from django.db.models import QuerySet

from personas.forms.base import RecordChoice, RecordForm
from personas.models import Memory, MemoryState
from personas.selectors import agents_of

NEW_STATES = [
    (MemoryState.ACTIVE.value, "Active: reaches prompts at once"),
    (MemoryState.PROPOSED.value, "Proposed: someone approves it first"),
]


class MemoryForm(RecordForm):
    model = Memory
    plain = ("text", "source", "valid_from", "valid_until")
    editors = {"text": "markdown"}
    fixed = ("state",)
    widgets = {
        "valid_from": forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        "valid_until": forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    }
    help_texts = {
        "text": "One fact, in a sentence or two.",
        "source": "Where it comes from: a person, a document, a conversation.",
        "valid_from": "In your timezone. Left empty: from the start.",
        "valid_until": "In your timezone. Left empty: until further notice.",
    }
    fieldsets = (
        ("Memory", "", ("text", "agent", "state")),
        ("Standing", "Who says so, and for how long it holds.", ("source", "valid_from", "valid_until")),
    )

    agent = RecordChoice(required=False, empty_label="Every agent of this workspace", label="Known to")
    state = forms.ChoiceField(choices=NEW_STATES, initial=MemoryState.ACTIVE.value)

    record: Memory | None

    def link_fields(self) -> None:
        self.offer(
            "agent",
            agents_of(self.workspace).prefetch_related(None),
            self.record.agent if self.record else None,
        )


class SuccessorForm(forms.Form):
    """Which memory takes this one's place."""

    def __init__(self, data: Any = None, *, rows: QuerySet[Memory]) -> None:
        super().__init__(data)
        self.successor = RecordChoice(label="Replace by", empty_label="Choose the memory that holds now")
        self.successor.offer(rows)
        self.fields["successor"] = self.successor
