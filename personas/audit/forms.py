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
    actor = forms.CharField(required=False, max_length=200, label=_("Who"))
    kind = forms.ChoiceField(
        required=False,
        label=_("What"),
        choices=[("", _("Anything")), *((kind, DISPLAY_NAMES[kind]) for kind in AUDIT_KINDS)],
    )
    verb = forms.ChoiceField(
        required=False,
        label=_("Did"),
        choices=[("", _("Any verb")), *((verb, capfirst(words)) for verb, words in VERB_LABELS.items())],
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
            said = data.get(name, "")[:40]
            if said and said not in dict(field.choices):
                field.choices = [*field.choices, (said, said)]

    def clean(self) -> dict[str, Any]:
        said: dict[str, Any] = super().clean() or {}
        if said.get("since") and said.get("until") and said["since"] >= said["until"]:
            self.add_error("until", _("This must be after the beginning."))
        return said

    def to_filter(self) -> AuditFilter:
        said = self.cleaned_data
        return AuditFilter(
            text=said["q"].strip(),
            actor=said["actor"].strip(),
            kind=said["kind"],
            verb=said["verb"],
            object_id=said["object"],
            since=said["since"],
            until=said["until"],
        )
