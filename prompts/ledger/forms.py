"""What to look for in the ledger; every field may be left empty."""

from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from prompts.ledger.selectors import LedgerFilter
from prompts.replay.forms import Choices, DateTimeLocalInput

STATUS_CHOICES = [("", _("Any answer")), ("200", _("With words (200)")), ("304", _("Unchanged (304)"))]


class LedgerFilterForm(forms.Form):
    """Filters as they stand in the address."""

    agent = forms.ChoiceField(label=_("Agent"), required=False)
    channel = forms.ChoiceField(label=_("Channel"), required=False)
    key = forms.ChoiceField(label=_("Key"), required=False)
    label = forms.CharField(label=_("Label"), required=False, max_length=40)
    status = forms.ChoiceField(required=False, choices=STATUS_CHOICES, label=_("Answer"))
    version = forms.IntegerField(label=_("Version"), required=False, min_value=1, max_value=2**31 - 1)
    request = forms.CharField(required=False, max_length=64, label=_("Request id"))
    since = forms.DateTimeField(required=False, widget=DateTimeLocalInput, label=_("From"))
    until = forms.DateTimeField(required=False, widget=DateTimeLocalInput, label=_("Before"))

    def __init__(self, *args: Any, agents: Choices, channels: Choices, keys: Choices, **more: Any) -> None:
        super().__init__(*args, **more)
        lists = {
            "agent": (gettext("Any agent"), agents),
            "channel": (gettext("Any channel"), channels),
            "key": (gettext("Any key"), keys),
        }
        for name, (nothing, choices) in lists.items():
            self.fields[name].choices = [("", nothing), *choices]  # type: ignore[attr-defined]  # a choice field

    def clean(self) -> dict[str, Any]:
        said: dict[str, Any] = super().clean() or {}
        if said.get("version") and not (said.get("agent") and said.get("channel")):
            self.add_error("version", gettext("Versions are counted per agent and channel: choose both."))
        if said.get("since") and said.get("until") and said["since"] >= said["until"]:
            self.add_error("until", gettext("This must be after the beginning."))
        return said

    def wanted(self, version_id: int | None) -> LedgerFilter:
        """The filter; a version of that number must have been looked up, and nought finds nothing."""
        said = self.cleaned_data
        return LedgerFilter(
            agent=said["agent"],
            channel=said["channel"],
            key_id=int(said["key"]) if said["key"] else None,
            version_id=version_id,
            status=int(said["status"]) if said["status"] else None,
            label=said["label"].strip(),
            request_id=said["request"].strip(),
            since=said["since"],
            until=said["until"],
        )
