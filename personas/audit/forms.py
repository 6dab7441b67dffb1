"""Filter form of the audit log; every field is optional."""

from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from personas.audit.descriptions import AUDIT_KINDS
from personas.audit.selectors import AuditFilter
from personas.ui.display_names import DISPLAY_NAMES, VERB_LABELS


class AuditFilterForm(forms.Form):
    """Filters of the audit log from the query string."""

    q = forms.CharField(required=False, max_length=200, label=_("Name"))
    actor = forms.CharField(required=False, max_length=200, label=_("Member"))
    kind = forms.ChoiceField(
        required=False,
        label=_("Target"),
        choices=[("", _("Any target")), *((kind, DISPLAY_NAMES[kind]) for kind in AUDIT_KINDS)],
    )
    verb = forms.ChoiceField(
        required=False,
        label=_("Action"),
        choices=[("", _("Any action")), *((verb, capfirst(label)) for verb, label in VERB_LABELS.items())],
    )
    since = forms.DateTimeField(required=False, label=_("From"))
    until = forms.DateTimeField(required=False, label=_("Before"))
    object = forms.IntegerField(
        required=False, min_value=1, max_value=2**62, widget=forms.HiddenInput, label=_("Record")
    )

    def __init__(self, data: QueryDict) -> None:
        super().__init__(data)
        for name in ("kind", "verb"):
            field: Any = self.fields[name]
            value = data.get(name, "")[:40]
            if value and value not in dict(field.choices):
                field.choices = [*field.choices, (value, value)]

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        if values.get("since") and values.get("until") and values["since"] >= values["until"]:
            self.add_error("until", _("The end must be after the start."))
        return values

    def to_filter(self) -> AuditFilter:
        values = self.cleaned_data
        return AuditFilter(
            text=values["q"].strip(),
            actor=values["actor"].strip(),
            kind=values["kind"],
            verb=values["verb"],
            object_id=values["object"],
            since=values["since"],
            until=values["until"],
        )
