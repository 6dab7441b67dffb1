"""What to look for in the ledger; every field may be left empty."""

from typing import Any

from django import forms

from prompts.forms.time_machine import Choices, MomentWidget
from prompts.selectors_ledger import LedgerFilter

STATUS = [("", "Any answer"), ("200", "With words (200)"), ("304", "Unchanged (304)")]


class LedgerForm(forms.Form):
    """Filters as they stand in the address."""

    agent = forms.ChoiceField(required=False)
    channel = forms.ChoiceField(required=False)
    key = forms.ChoiceField(required=False)
    label = forms.CharField(required=False, max_length=40)
    status = forms.ChoiceField(required=False, choices=STATUS, label="Answer")
    version = forms.IntegerField(required=False, min_value=1, max_value=2**31 - 1)
    request = forms.CharField(required=False, max_length=64, label="Request id")
    since = forms.DateTimeField(required=False, widget=MomentWidget, label="From")
    until = forms.DateTimeField(required=False, widget=MomentWidget, label="Before")

    def __init__(self, *args: Any, agents: Choices, channels: Choices, keys: Choices, **more: Any) -> None:
        super().__init__(*args, **more)
        lists = {
            "agent": ("Any agent", agents),
            "channel": ("Any channel", channels),
            "key": ("Any key", keys),
        }
        for name, (nothing, choices) in lists.items():
            self.fields[name].choices = [("", nothing), *choices]  # type: ignore[attr-defined]  # a choice field

    def clean(self) -> dict[str, Any]:
        said: dict[str, Any] = super().clean() or {}
        if said.get("version") and not (said.get("agent") and said.get("channel")):
            self.add_error("version", "Versions are counted per agent and channel: choose both.")
        if said.get("since") and said.get("until") and said["since"] >= said["until"]:
            self.add_error("until", "This must be after the beginning.")
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
