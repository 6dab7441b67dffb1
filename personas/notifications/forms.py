"""Form of a member's notification preferences: one choice for each kind."""

from collections.abc import Sequence
from typing import Any

from django import forms

from personas.models import NotificationDelivery, NotificationKind
from personas.ui.action_form import ActionForm


class PreferencesForm(ActionForm):
    """How the member gets each kind of notification."""

    def __init__(self, data: Any = None, *, preferences: Sequence[tuple[NotificationKind, str]]) -> None:
        super().__init__(data)
        for kind, delivery in preferences:
            self.fields[kind.value] = forms.ChoiceField(
                label=kind.label, choices=NotificationDelivery.choices, initial=delivery
            )
