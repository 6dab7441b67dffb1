"""Forms to move a label and to roll back production."""

from collections.abc import Iterable

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from personas.ui.action_form import ActionForm
from personas.workspaces.models import slug_validator
from prompts.models import PRODUCTION, PromptLabel


class LabelForm(ActionForm):
    """Set a custom label (not production) on a version."""

    label = forms.CharField(
        label=_("Label"),
        max_length=40,
        validators=[slug_validator],
        help_text=_("Use lowercase letters, digits and hyphens, for example “canary”."),
    )
    note = forms.CharField(max_length=500, required=False, label=_("Reason"))
    # The version id of each label when the page was rendered, as `name:id` pairs, for optimistic locking.
    seen = forms.CharField(max_length=20_000, required=False, widget=forms.HiddenInput)

    @staticmethod
    def format_seen(labels: Iterable[PromptLabel]) -> str:
        return " ".join([f"{label.name}:{label.version_id}" for label in labels])

    def clean_label(self) -> str:
        label = str(self.cleaned_data["label"])
        if label == PRODUCTION:
            raise forms.ValidationError(
                gettext("Only builds, releases and rollbacks can move “production”. Choose another label.")
            )
        return label

    def get_expected_version_id(self) -> int | None:
        """Return the id of the version that the page showed for the label; None if it showed none."""
        pairs = [pair.partition(":") for pair in self.cleaned_data["seen"].split()]
        version_ids = {name: key for name, _, key in pairs if key.isdecimal() and len(key) < 16}
        version_id = version_ids.get(self.cleaned_data["label"])
        return int(version_id) if version_id is not None else None


class RollBackForm(ActionForm):
    """Roll back production to the version number in `to`, or to its previous version if `to` is empty."""

    note = forms.CharField(max_length=500, label=_("Reason"), help_text=_("Shown in the history."))
    to = forms.IntegerField(required=False, min_value=1, max_value=2**31 - 1, widget=forms.HiddenInput)
