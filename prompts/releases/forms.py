"""What shall be released, and why a release is refused or forced."""

from collections.abc import Iterable, Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from personas.ui.action_form import ActionForm
from prompts.models import AgentPrompt


class ReleaseForm(ActionForm):
    """Which prompts shall go to production as they are now, and what for."""

    message = forms.CharField(
        label=_("Message"), max_length=300, help_text=_("What changes for those whom these agents serve.")
    )
    prompts = forms.MultipleChoiceField(
        label=_("Prompts"),
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": _("Choose at least one prompt.")},
    )

    def __init__(self, data: Any = None, *, rows: Sequence[AgentPrompt]) -> None:
        super().__init__(data)
        self.rows = rows
        boxes: Any = self.fields["prompts"]
        # The version that was seen is part of the choice: what was built since is not what was chosen.
        boxes.choices = [(get_choice_value(row), str(row)) for row in rows]
        boxes.error_messages["invalid_choice"] = gettext(
            "Something was built after you looked, or went to production already. Look again, then choose."
        )

    def chosen(self) -> list[AgentPrompt]:
        wanted = set(self.cleaned_data["prompts"])
        return [row for row in self.rows if get_choice_value(row) in wanted]


def get_choice_value(prompt: AgentPrompt) -> str:
    return f"{prompt.pk}:{prompt.latest_id}"


def get_checked_values(said: Iterable[str]) -> set[str]:
    """What was ticked, to be ticked again when a form comes back."""
    return set(said)


class ReasonForm(ActionForm):
    """Why a release is refused or forced; it stands for all to see."""

    reason = forms.CharField(label=_("Reason"), max_length=500)


class LabelProtectionForm(ActionForm):
    """A label that only owners shall move, or everybody again."""

    label = forms.CharField(label=_("Label"), max_length=40)
    protected = forms.BooleanField(label=_("Protected"), required=False)
