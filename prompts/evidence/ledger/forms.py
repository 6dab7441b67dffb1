"""Filter form of the ledger page. Every field is optional."""

from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from prompts.evidence.ledger.selectors import LedgerFilter
from prompts.evidence.replay.forms import Choices, DateTimeLocalInput

STATUS_CHOICES = [("", _("Any status")), ("200", _("200 (full prompt)")), ("304", _("304 (not modified)"))]
KIND_CHOICES = [("", _("Prompts and skills")), ("prompt", _("Prompts")), ("skill", _("Skills"))]

# Filters that are used less often. The page shows them after a click, or if one of them is set.
MORE_FILTERS = ("kind", "status", "version", "label", "trace", "since", "until")


class LedgerFilterForm(forms.Form):
    """Filters of the ledger page, read from the query string."""

    agent = forms.ChoiceField(label=_("Agent"), required=False)
    channel = forms.ChoiceField(label=_("Channel"), required=False)
    key = forms.ChoiceField(label=_("Key"), required=False)
    label = forms.CharField(label=_("Label"), required=False, max_length=40)
    kind = forms.ChoiceField(required=False, choices=KIND_CHOICES, label=_("Served"))
    status = forms.ChoiceField(required=False, choices=STATUS_CHOICES, label=_("Status"))
    version = forms.IntegerField(label=_("Version"), required=False, min_value=1, max_value=2**31 - 1)
    request = forms.CharField(required=False, max_length=64, label=_("Request ID"))
    trace = forms.RegexField(
        r"^[0-9a-f]{32}$",
        required=False,
        label=_("Trace ID"),
        error_messages={"invalid": _("A trace ID has 32 lowercase hexadecimal digits.")},
    )
    since = forms.DateTimeField(required=False, widget=DateTimeLocalInput, label=_("From"))
    until = forms.DateTimeField(required=False, widget=DateTimeLocalInput, label=_("Before"))

    def __init__(self, *args: Any, agents: Choices, channels: Choices, keys: Choices, **more: Any) -> None:
        super().__init__(*args, **more)
        lists = {
            "agent": (gettext("Any agent"), agents),
            "channel": (gettext("Any channel"), channels),
            "key": (gettext("Any key"), keys),
        }
        for name, (empty_label, choices) in lists.items():
            self.fields[name].choices = [("", empty_label), *choices]  # type: ignore[attr-defined]  # a choice field

    @property
    def has_more_filters(self) -> bool:
        """Whether one of the filters is set that the page shows below “More filters”."""
        return any(self.data.get(name) for name in MORE_FILTERS)

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if data.get("version") and not (data.get("agent") and data.get("channel")):
            self.add_error(
                "version",
                gettext(
                    "Also choose an agent and a channel, because every prompt has its own version numbers."
                ),
            )
        if data.get("since") and data.get("until") and data["since"] >= data["until"]:
            self.add_error("until", gettext("The end must be after the start."))
        return data

    def get_filter(self, version_id: int | None) -> LedgerFilter:
        """Return the filter. `version_id` is the id of the selected version, or 0 if it does not exist."""
        data = self.cleaned_data
        return LedgerFilter(
            agent=data["agent"],
            channel=data["channel"],
            key_id=int(data["key"]) if data["key"] else None,
            version_id=version_id,
            status=int(data["status"]) if data["status"] else None,
            label=data["label"].strip(),
            request_id=data["request"].strip(),
            trace_id=data["trace"],
            kind=data["kind"],
            since=data["since"],
            until=data["until"],
        )
