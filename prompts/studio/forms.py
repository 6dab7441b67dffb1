"""Record forms in the Studio: the main text first, the other fields collapsed."""

from collections.abc import Mapping
from typing import Any

from django.forms import BoundField, CheckboxInput
from django.forms.utils import ErrorDict
from django.forms.widgets import ChoiceWidget
from django.utils.datastructures import MultiValueDict

from personas.agents.forms import AgentForm
from personas.drafts.services import DraftValues
from personas.records.forms import RecordForm

# Fields that are shown together with the main text; all other fields are collapsed.
PRIMARY_FIELDS = {"name", "display_name", "title", "description", "snippet", "agent", "status", "slug"}


def set_form_access(form: RecordForm, *, is_open: bool) -> RecordForm:
    """Make the form read-only unless `is_open`, which is set for members with edit permission."""
    for field in () if is_open else form.fields.values():
        # The text of a readonly field can still be selected and copied; that of a disabled field cannot.
        if isinstance(field.widget, ChoiceWidget | CheckboxInput):
            field.disabled = True
        else:
            field.widget.attrs["readonly"] = True
    return form


def build_form_data(values: DraftValues) -> MultiValueDict[str, str]:
    return MultiValueDict({name: list(items) for name, items in values.items()})


def get_submitted_values(form: RecordForm, data: Mapping[str, Any]) -> DraftValues:
    """Return the submitted values of the form's own fields, without the revision."""
    submitted = data if isinstance(data, MultiValueDict) else MultiValueDict(data)
    names = [name for name in form.fields if name in submitted and name != "revision"]
    return {name: list(submitted.getlist(name)) for name in names}


class StudioFields:
    """The fields of a form in Studio order, each with its error messages."""

    def __init__(self, form: RecordForm) -> None:
        self.form = form
        self.errors_by_field = {name: list(map(str, errors)) for name, errors in form.errors.items()}
        # The Studio renders errors outside the fields, where each live preview response can replace them.
        form._errors = ErrorDict()  # type: ignore[attr-defined]  # so that fields do not render them too

    @property
    def visible_fields(self) -> list[BoundField]:
        return [bound for group in self.form.groups() for bound in group["fields"]]

    @property
    def main_field(self) -> BoundField | None:
        name = next((name for name in self.form.editors if name in self.form.fields), None)
        return self.form[name] if name else None

    @property
    def primary_fields(self) -> list[tuple[BoundField, list[str]]]:
        return [
            self.pair_with_errors(bound)
            for bound in self.visible_fields
            if bound.name in PRIMARY_FIELDS and not self.is_main_field(bound)
        ]

    @property
    def other_fields(self) -> list[tuple[BoundField, list[str]]]:
        return [
            self.pair_with_errors(bound)
            for bound in self.visible_fields
            if bound.name not in PRIMARY_FIELDS and not self.is_main_field(bound)
        ]

    @property
    def all_fields(self) -> list[tuple[BoundField, list[str]]]:
        return [self.pair_with_errors(bound) for bound in self.visible_fields]

    @property
    def general_errors(self) -> list[str]:
        """Errors that belong to no visible field."""
        field_names = {bound.name for bound in self.visible_fields}
        return [
            error
            for name, errors in self.errors_by_field.items()
            if name not in field_names
            for error in errors
        ]

    @property
    def invalid_fields(self) -> list[BoundField]:
        return [bound for bound in self.visible_fields if bound.name in self.errors_by_field]

    def pair_with_errors(self, bound: BoundField) -> tuple[BoundField, list[str]]:
        return bound, self.errors_by_field.get(bound.name, [])

    def is_main_field(self, bound: BoundField) -> bool:
        return self.main_field is not None and bound.name == self.main_field.name

    @property
    def main_field_with_errors(self) -> tuple[BoundField, list[str]] | None:
        return self.pair_with_errors(self.main_field) if self.main_field else None


class AgentTextForm(AgentForm):
    """The agent form without fields for related records, so that saving leaves the relations unchanged.

    The release policy is not part of the text: lifting a review requires a reason and a recent sign-in.
    """

    model_fields = tuple(name for name in AgentForm.model_fields if name != "release_policy")
    reason = None  # type: ignore[assignment]  # None removes an inherited field
    identity = soul = user_profile = parent = None  # type: ignore[assignment]
    tools = planning_tools = channels = None  # type: ignore[assignment]

    def initial_values(self) -> dict[str, Any]:
        return RecordForm.initial_values(self) | self.get_stated_value()

    def set_querysets(self) -> None:
        """Do nothing: this form has no relation fields."""
