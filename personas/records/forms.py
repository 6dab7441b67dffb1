"""Base form of records: fields built from the model, choices limited to the workspace."""

from collections.abc import Sequence
from typing import Any, ClassVar, cast

from django import forms
from django.core.validators import validate_slug
from django.db.models import Model, QuerySet
from django.forms.models import fields_for_model
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from personas.errors import InvalidInput
from personas.models import Record, Workspace
from personas.records.review_policy import MAX_REASON_LENGTH
from personas.ui.display_names import DISPLAY_NAMES, get_display_name
from personas.workspaces.models import slug_validator

StrOrPromise = str | Promise
Fieldset = tuple[StrOrPromise, StrOrPromise, tuple[str, ...]]


class RecordForm(forms.Form):
    """Form that creates or edits a record. `values()` returns the submitted values for the record service."""

    model: ClassVar[type[Record]]
    model_fields: ClassVar[tuple[str, ...]] = ()
    fixed: ClassVar[tuple[str, ...]] = ()
    widgets: ClassVar[dict[str, type[forms.Widget] | forms.Widget]] = {}
    help_texts: ClassVar[dict[str, StrOrPromise]] = {}
    labels: ClassVar[dict[str, StrOrPromise]] = {}
    fieldsets: ClassVar[tuple[Fieldset, ...]] = ()
    # Fields that are shown as code editors, with the editor's language: markdown, yaml or plain. The main
    # field of the form comes first.
    editors: ClassVar[dict[str, str]] = {}

    revision = forms.IntegerField(widget=forms.HiddenInput, required=False, min_value=0)

    def __init__(self, *args: Any, workspace: Workspace, record: Record | None = None, **kwargs: Any) -> None:
        self.workspace, self.record = workspace, record
        kwargs["initial"] = self.initial_values() | kwargs.get("initial", {})
        super().__init__(*args, **kwargs)
        self._add_model_fields()
        self.set_querysets()
        for name, field in self.fields.items():
            field.label = get_display_name(name) if field.label is None else field.label
        for name in self.fixed if record is not None else ():
            self.fields.pop(name, None)
        if self.fieldsets:
            self.order_fields([name for _title, _lede, names in self.fieldsets for name in names])
        for name, language in self.editors.items():
            self.fields[name].widget.attrs["data-editor"] = language

    def initial_values(self) -> dict[str, Any]:
        """Return the current field values of the record; empty for a new record."""
        if self.record is None:
            return {}
        values = {name: getattr(self.record, name) for name in self.record.content}
        return values | {"revision": self.record.revision}

    def set_querysets(self) -> None:
        """Hook for subclasses: limit the querysets of the choice fields to rows of this workspace."""

    def set_choices(self, name: str, rows: QuerySet[Any], current: Any = None) -> None:
        """Set the rows that the choice field `name` offers; `current` is its stored value."""
        cast("RecordChoiceField | RecordMultipleChoiceField", self.fields[name]).set_choices(rows, current)

    def groups(self) -> list[dict[str, Any]]:
        """Group the visible fields by fieldset."""
        sets = self.fieldsets or (("", "", tuple(self.fields)),)
        groups = [
            (title, lede, [self[name] for name in names if name in self.fields and not self[name].is_hidden])
            for title, lede, names in sets
        ]
        return [{"title": title, "lede": lede, "fields": fields} for title, lede, fields in groups if fields]

    def values(self) -> dict[str, Any]:
        return {name: value for name, value in self.cleaned_data.items() if name != "revision"}

    def add_service_errors(self, error: InvalidInput) -> None:
        """Show the validation errors of a service on the form fields with the same names.

        Errors of other fields are shown above the form.
        """
        for name, messages in error.errors.items():
            for message in messages:
                self.add_error(name if name in self.fields else None, message)

    def _add_model_fields(self) -> None:
        model_fields = fields_for_model(
            self.model,
            fields=self.model_fields,
            widgets=self.widgets,
            help_texts=cast("dict[str, str]", self.help_texts),
            labels=cast("dict[str, str]", DISPLAY_NAMES | self.labels),
        )
        for name in self.model_fields:
            self.fields[name] = use_slug_validator(model_fields[name] or _raise_not_editable(self, name))


def build_model_field(model: type[Model], name: str, label: StrOrPromise) -> forms.Field:
    """Build the form field of one model field, with `label` instead of the model field's own label."""
    fields = fields_for_model(model, fields=[name], labels=cast("dict[str, str]", {name: label}))
    return use_slug_validator(fields[name])


def build_review_lift_field() -> forms.CharField:
    """Build the field for the reason of changing a release policy from reviewed to automatic."""
    return forms.CharField(
        required=False,
        max_length=MAX_REASON_LENGTH,
        label=gettext_lazy("Reason for lifting the review"),
        help_text=gettext_lazy(
            "Required to change the policy from reviewed to automatic. It is recorded in the audit log, and "
            "members who can approve are notified. You may have to confirm your sign-in."
        ),
    )


def use_slug_validator(field: forms.Field) -> forms.Field:
    """Replace Django's slug validator with our stricter one. With both, a user would see two messages."""
    field.validators = [slug_validator if rule is validate_slug else rule for rule in field.validators]
    return field


def _raise_not_editable(form: RecordForm, name: str) -> forms.Field:
    raise TypeError(f"{form.model.__name__}.{name} cannot be edited.")


class RecordChoiceField(forms.ModelChoiceField):  # type: ignore[type-arg]  # generic only in the stubs
    """Choice of one record of the workspace.

    With `create_url`, the field has a link to the form that creates another one.
    """

    create_url = ""
    create_label: StrOrPromise = ""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(queryset=None, **kwargs)

    def set_choices(self, rows: QuerySet[Any], current: Model | None = None) -> None:
        """Offer the active rows, and also the row that is currently stored, even if it is archived."""
        current_ids = [current.pk] if current is not None else []
        self.queryset = rows.filter(archived_at=None) | rows.filter(pk__in=current_ids)


class RecordMultipleChoiceField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]  # generic only in the stubs
    """Choice of several records of the workspace.

    Records that were chosen before keep their stored order; newly chosen records follow, sorted by name.
    """

    widget = forms.CheckboxSelectMultiple

    def __init__(self, **kwargs: Any) -> None:
        self.current_ids: list[int] = []
        super().__init__(queryset=None, required=False, **kwargs)

    def set_choices(self, rows: QuerySet[Any], current: Sequence[int] | None = None) -> None:
        self.current_ids = list(current or ())
        self.queryset = rows.filter(archived_at=None) | rows.filter(pk__in=self.current_ids)

    def clean(self, value: Any) -> list[Any]:  # type: ignore[override]  # a list: the order is the point
        try:
            chosen = list(super().clean(value))
        except OverflowError:
            # SQLite raises OverflowError for an id that does not fit into 64 bits.
            raise forms.ValidationError(_("Select one of the choices."), code="invalid_choice") from None
        positions = {pk: position for position, pk in enumerate(self.current_ids)}
        return sorted(chosen, key=lambda row: (positions.get(row.pk, len(positions)), str(row)))
