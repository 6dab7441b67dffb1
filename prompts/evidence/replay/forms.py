"""Forms to find a replay by time or by request id."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from personas.workspaces.models import slug_validator
from prompts.models import PRODUCTION

Choices = Sequence[tuple[str, str]]


class DateTimeLocalInput(forms.DateTimeInput):
    """The browser's native date and time picker, with seconds."""

    input_type = "datetime-local"

    def __init__(self) -> None:
        super().__init__(attrs={"step": "1"}, format="%Y-%m-%dT%H:%M:%S")


class ReplaySearchForm(forms.Form):
    """Base of the two search forms.

    Both forms are on one page and the user fills in only one of them, so no field has the HTML attribute
    `required`.
    """

    use_required_attribute = False


class ReplayByTimeForm(ReplaySearchForm):
    """Find a replay by agent, channel, label and time."""

    agent = forms.ChoiceField(label=_("Agent"))
    channel = forms.ChoiceField(label=_("Channel"))
    at = forms.DateTimeField(label=_("Date and time"), widget=DateTimeLocalInput)
    label = forms.CharField(label=_("Label"), max_length=40, validators=[slug_validator], initial=PRODUCTION)

    def __init__(self, *args: Any, agents: Choices, channels: Choices, **more: Any) -> None:
        super().__init__(*args, **more)
        self.fields["agent"].choices = agents  # type: ignore[attr-defined]  # a choice field
        self.fields["channel"].choices = channels  # type: ignore[attr-defined]  # a choice field
        zone = timezone.get_current_timezone_name()
        self.fields["at"].help_text = _("In your time zone, %(zone)s.") % {"zone": zone}
        self.fields["at"].initial = timezone.now
        self.fields["label"].help_text = _("Bots get “production” by default. Every build moves “latest”.")

    def clean_at(self) -> object:
        at = self.cleaned_data["at"]
        if at > timezone.now():
            raise forms.ValidationError(_("Enter a time in the past."))
        return at


class ReplayByRequestForm(ReplaySearchForm):
    """Find a replay by request id or ledger row number."""

    request = forms.CharField(
        max_length=64,
        label=_("Request"),
        help_text=_("The response's X-Request-ID, or a ledger row number. No other fields are needed."),
    )
