"""Forms on the page of a context file: waiver and assignment."""

from datetime import timedelta
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from personas.models import Workspace
from personas.records.forms import RecordMultipleChoiceField
from personas.selectors import list_agents
from personas.ui.action_form import ActionForm
from skills.files.services import MAX_WAIVER_PERIOD
from skills.models import AssignedTo

DEFAULT_WAIVER_PERIOD = timedelta(days=30)


class WaiverForm(ActionForm):
    """Reason and last day of a waiver for a quarantined revision."""

    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        help_text=_("Why this text is acceptable. Shown in the history."),
    )
    until = forms.DateField(
        label=_("Expires on"),
        help_text=_("Up to one year from today. The file returns to quarantine on the day after this date."),
    )
    digest = forms.CharField(widget=forms.HiddenInput, required=False, max_length=64)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        today = timezone.now().date()
        self.fields["until"].initial = today + DEFAULT_WAIVER_PERIOD
        self.fields["until"].widget.attrs |= {
            "min": today.isoformat(),
            "max": (today + MAX_WAIVER_PERIOD).isoformat(),
        }


class AssignmentForm(ActionForm):
    """Which agents a discovered skill is for."""

    assigned_to = forms.ChoiceField(
        label=_("Assigned to"), choices=AssignedTo.choices, widget=forms.RadioSelect
    )
    agents = RecordMultipleChoiceField(label=_("Selected agents"))

    def __init__(self, *args: Any, workspace: Workspace, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        rows = list_agents(workspace).prefetch_related(None)
        # Archived agents are not offered, except those that are already selected.
        self.fields["agents"].set_choices(rows, self.initial.get("agents"))  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if (
            cleaned.get("assigned_to") == AssignedTo.SELECTED
            and not cleaned.get("agents")
            and "agents" not in self.errors
        ):
            self.add_error("agents", gettext("Select at least one agent."))
        return cleaned
