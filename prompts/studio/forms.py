"""A record's own form as the Studio shows it: the long text first, the rest folded."""

from collections.abc import Mapping
from typing import Any

from django.forms import BoundField, CheckboxInput
from django.forms.utils import ErrorDict
from django.forms.widgets import ChoiceWidget
from django.utils.datastructures import MultiValueDict

from personas.agents.forms import AgentForm
from personas.drafts.services import DraftValues
from personas.records.forms import RecordForm

# Besides the long text, what a person sees without unfolding anything.
PRIMARY_FIELDS = {"label", "name", "title", "description", "snippet", "agent", "state", "slug"}


def set_form_access(form: RecordForm, *, is_open: bool) -> RecordForm:
    """Shut, where the reader may not write."""
    for one in () if is_open else form.fields.values():
        # What can only be read can still be selected and copied.
        if isinstance(one.widget, ChoiceWidget | CheckboxInput):
            one.disabled = True
        else:
            one.widget.attrs["readonly"] = True
    return form


def build_form_data(typed: DraftValues) -> MultiValueDict[str, str]:
    return MultiValueDict({name: list(many) for name, many in typed.items()})


def get_submitted_values(form: RecordForm, data: Mapping[str, Any]) -> DraftValues:
    """What was sent for this form's fields, and nothing else."""
    sent = data if isinstance(data, MultiValueDict) else MultiValueDict(data)
    names = [name for name in form.fields if name in sent and name != "revision"]
    return {name: list(sent.getlist(name)) for name in names}


class StudioFields:
    """The fields in the order of the Studio, each with what is wrong in it."""

    def __init__(self, form: RecordForm) -> None:
        self.form = form
        self.mistakes = {name: list(map(str, said)) for name, said in form.errors.items()}
        # Told beside the fields, where each answer of the live preview can tell them anew.
        form._errors = ErrorDict()  # type: ignore[attr-defined]  # drawn by us, not by each field

    @property
    def shown(self) -> list[BoundField]:
        return [bound for group in self.form.groups() for bound in group["fields"]]

    @property
    def main(self) -> BoundField | None:
        name = next((name for name in self.form.editors if name in self.form.fields), None)
        return self.form[name] if name else None

    @property
    def upfront(self) -> list[tuple[BoundField, list[str]]]:
        return [
            self.told(bound)
            for bound in self.shown
            if bound.name in PRIMARY_FIELDS and not self.is_main(bound)
        ]

    @property
    def more(self) -> list[tuple[BoundField, list[str]]]:
        return [
            self.told(bound)
            for bound in self.shown
            if bound.name not in PRIMARY_FIELDS and not self.is_main(bound)
        ]

    @property
    def all(self) -> list[tuple[BoundField, list[str]]]:
        return [self.told(bound) for bound in self.shown]

    @property
    def general(self) -> list[str]:
        """What is said of no single field."""
        known = {bound.name for bound in self.shown}
        return [said for name, many in self.mistakes.items() if name not in known for said in many]

    @property
    def wrong(self) -> list[BoundField]:
        return [bound for bound in self.shown if bound.name in self.mistakes]

    def told(self, bound: BoundField) -> tuple[BoundField, list[str]]:
        return bound, self.mistakes.get(bound.name, [])

    def is_main(self, bound: BoundField) -> bool:
        return self.main is not None and bound.name == self.main.name

    @property
    def main_told(self) -> tuple[BoundField, list[str]] | None:
        return self.told(self.main) if self.main else None


class AgentTextForm(AgentForm):
    """Without the links, which then stay as they are."""

    identity = soul = user_profile = parent = None  # type: ignore[assignment]  # how a form drops fields
    tools = planning_tools = channels = None  # type: ignore[assignment]

    def initial_values(self) -> dict[str, Any]:
        return RecordForm.initial_values(self)

    def set_querysets(self) -> None:
        """There is nothing to choose."""
