"""Forms to request a release, to give a reason, and to protect a label."""

from collections.abc import Iterable, Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from personas.models import Membership
from personas.ui.action_form import ActionForm
from prompts.models import AgentPrompt


class ReleaseForm(ActionForm):
    """Request a release of the selected prompts."""

    message = forms.CharField(
        label=_("Message"), max_length=300, help_text=_("What changes for the users of these agents.")
    )
    prompts = forms.MultipleChoiceField(
        label=_("Prompts"),
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": _("Select at least one prompt.")},
    )

    reviewers = forms.MultipleChoiceField(
        label=_("Reviewers"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Selected reviewers are notified. Other reviewers can also approve the release."),
    )

    def __init__(
        self,
        data: Any = None,
        *,
        rows: Sequence[AgentPrompt],
        members: Sequence[Membership] = (),
        initial: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(data, initial=initial)
        self.rows, self.members = rows, members
        people: Any = self.fields["reviewers"]
        people.choices = build_member_choices(members)
        boxes: Any = self.fields["prompts"]
        # The value includes the id of the latest version. After a newer build the submitted value is invalid.
        boxes.choices = [(get_choice_value(row), str(row)) for row in rows]
        boxes.error_messages["invalid_choice"] = gettext(
            "A prompt was rebuilt or released after you opened this page. Check the "
            "list and select the prompts again."
        )

    def list_selected_prompts(self) -> list[AgentPrompt]:
        selected = set(self.cleaned_data["prompts"])
        return [row for row in self.rows if get_choice_value(row) in selected]

    def list_selected_members(self) -> list[Membership]:
        return [member for member in self.members if str(member.pk) in self.cleaned_data["reviewers"]]


def build_member_choices(members: Sequence[Membership]) -> list[tuple[str, str]]:
    return [(str(member.pk), str(member.user)) for member in members]


def get_choice_value(prompt: AgentPrompt) -> str:
    return f"{prompt.pk}:{prompt.latest_id}"


def get_checked_values(values: Iterable[str]) -> set[str]:
    """Return the values of the checkboxes that are checked when the form is shown."""
    return set(values)


class ReasonForm(ActionForm):
    """Reason for a rejection or an override; all members see it."""

    reason = forms.CharField(label=_("Reason"), max_length=500)


class ReviewersForm(ActionForm):
    """Members to ask for a review of a release."""

    reviewers = forms.MultipleChoiceField(
        label=_("Reviewers"),
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": _("Select at least one member.")},
    )

    def __init__(self, data: Any = None, *, members: Sequence[Membership]) -> None:
        super().__init__(data, auto_id="ask_%s")
        self.members = members
        people: Any = self.fields["reviewers"]
        people.choices = build_member_choices(members)

    def list_selected_members(self) -> list[Membership]:
        return [member for member in self.members if str(member.pk) in self.cleaned_data["reviewers"]]


class LabelProtectionForm(ActionForm):
    """Protect a label, so that only owners may move it, or unprotect it."""

    label = forms.CharField(label=_("Label"), max_length=40)
    protected = forms.BooleanField(label=_("Protected"), required=False)
