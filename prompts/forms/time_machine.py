"""Which moment of the past, or which request."""

from collections.abc import Sequence

from django import forms
from django.utils import timezone

from personas.models.workspaces import slug_rule
from prompts.models import PRODUCTION

Choices = Sequence[tuple[str, str]]


class MomentWidget(forms.DateTimeInput):
    """The browser's own picker, down to the second."""

    input_type = "datetime-local"

    def __init__(self) -> None:
        super().__init__(attrs={"step": "1"}, format="%Y-%m-%dT%H:%M:%S")


class MomentForm(forms.Form):
    """An agent on a channel, a label, and when."""

    agent = forms.ChoiceField()
    channel = forms.ChoiceField()
    at = forms.DateTimeField(label="Moment", widget=MomentWidget)
    label = forms.CharField(max_length=40, validators=[slug_rule], initial=PRODUCTION)

    def __init__(self, *args: object, agents: Choices, channels: Choices, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]  # handed through
        self.fields["agent"].choices = agents  # type: ignore[attr-defined]  # a choice field
        self.fields["channel"].choices = channels  # type: ignore[attr-defined]  # a choice field
        self.fields["at"].help_text = f"In your time zone, {timezone.get_current_timezone_name()}."
        self.fields["label"].help_text = "What bots get is “production”; every build moves “latest”."

    def clean_at(self) -> object:
        at = self.cleaned_data["at"]
        if at > timezone.now():
            raise forms.ValidationError("Name a moment that has passed.")
        return at


class RequestForm(forms.Form):
    """The id that an answer carried, or the number of a row in the ledger."""

    request = forms.CharField(
        max_length=64,
        label="Request",
        help_text="The id that came with the answer, or the number of a ledger row.",
    )
