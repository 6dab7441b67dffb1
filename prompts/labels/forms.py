"""Where a label shall point, and why it goes back."""

from collections.abc import Iterable

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from personas.ui.action_form import ActionForm
from personas.workspaces.models import slug_validator
from prompts.models import PRODUCTION, PromptLabel


class LabelForm(ActionForm):
    """A label of the workspace's own for one version."""

    label = forms.CharField(
        label=_("Label"),
        max_length=40,
        validators=[slug_validator],
        help_text=_("Small letters, digits and hyphens, as in “canary”."),
    )
    note = forms.CharField(max_length=500, required=False, label=_("Why"))
    # Where each label stood when the page was drawn: whoever moves one must have seen where it was.
    seen = forms.CharField(max_length=20_000, required=False, widget=forms.HiddenInput)

    @staticmethod
    def seen_now(labels: Iterable[PromptLabel]) -> str:
        return " ".join([f"{label.name}:{label.version_id}" for label in labels])

    def clean_label(self) -> str:
        label = str(self.cleaned_data["label"])
        if label == PRODUCTION:
            raise forms.ValidationError(gettext("Production moves by builds, releases and roll-backs."))
        return label

    def expected(self) -> int | None:
        """The id of the version at which the label was seen; none where there was no such label."""
        pairs = [said.partition(":") for said in self.cleaned_data["seen"].split()]
        known = {name: key for name, _, key in pairs if key.isdecimal() and len(key) < 16}
        said = known.get(self.cleaned_data["label"])
        return int(said) if said is not None else None


class RollBackForm(ActionForm):
    """Why production goes back, and to which version; without one, to where it was before."""

    note = forms.CharField(max_length=500, label=_("Why"), help_text=_("For those who look later."))
    to = forms.IntegerField(required=False, min_value=1, max_value=2**31 - 1, widget=forms.HiddenInput)
