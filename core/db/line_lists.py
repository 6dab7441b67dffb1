"""A list of single lines: the model field, stored as text with one item per line, and its form field."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext as _

from core.db.fields import validate_characters, validate_single_line

if TYPE_CHECKING:
    Text = models.TextField[Any, Any]
else:
    Text = models.TextField

ItemValidator = Callable[[str], None]


class LineListField(Text):
    """An ordered list of distinct, non-empty lines. With `null=True`, None differs from an empty list."""

    # For the type checker: a list of strings, or None.
    _pyi_private_set_type: Any
    _pyi_private_get_type: Any

    def __init__(
        self,
        *args: Any,
        max_items: int = 100,
        item_length: int = 1_000,
        item_validators: Sequence[ItemValidator] = (),
        **kwargs: Any,
    ) -> None:
        self.max_items, self.item_length, self.item_validators = max_items, item_length, item_validators
        super().__init__(*args, **kwargs)

    def from_db_value(self, value: str | None, expression: Any, connection: Any) -> list[str] | None:
        return None if value is None else split_lines(value)

    def get_prep_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list | tuple) else value

    def to_python(self, value: Any) -> Any:
        if isinstance(value, str):
            return split_lines(value)
        return value if value is None else [item.strip() if isinstance(item, str) else item for item in value]

    def value_to_string(self, obj: models.Model) -> str:
        return str(self.get_prep_value(self.value_from_object(obj)) or "")

    def validate(self, value: Any, model_instance: models.Model | None) -> None:
        super().validate(value, model_instance)
        if value is None:
            return
        if len(value) > self.max_items:
            message = _("Too many entries: %(count)d. The limit is %(limit)d.")
            raise ValidationError(message, "max_items", {"count": len(value), "limit": self.max_items})
        for item in value:
            self.validate_item(item)
        if repeated := next((item for item in value if value.count(item) > 1), ""):
            raise ValidationError(
                _("“%(item)s” is listed more than once. Remove the duplicates."),
                "repeated",
                {"item": repeated},
            )

    def validate_item(self, item: Any) -> None:
        if not isinstance(item, str) or not item:
            raise ValidationError(_("Each entry must be a single line."), "not_text")
        if len(item) > self.item_length:
            message = _("An entry is %(size)d characters long. Shorten it to %(limit)d or fewer.")
            raise ValidationError(message, "item_length", {"size": len(item), "limit": self.item_length})
        for validator in (validate_single_line, validate_characters, *self.item_validators):
            validator(item)

    def formfield(self, **kwargs: Any) -> Any:
        # TextField passes a text area as the widget, which suits this form field too.
        return super().formfield(**{"form_class": LineListFormField, **kwargs})


class LineListFormField(forms.CharField):
    """A text area with one item per line. Blank lines and surrounding spaces are ignored."""

    widget = forms.Textarea

    def widget_attrs(self, widget: Any) -> dict[str, Any]:
        return super().widget_attrs(widget) | {"rows": 4}

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(map(str, value)) if isinstance(value, list | tuple) else value

    def clean(self, value: Any) -> Any:
        return split_lines(super().clean(value))

    def has_changed(self, initial: Any, data: Any) -> bool:
        return split_lines(self.prepare_value(initial) or "") != split_lines(data or "")


def split_lines(text: str) -> list[str]:
    """Split at line feeds only: other characters that end a line are refused by the validators."""
    lines = text.replace("\r\n", "\n").split("\n")
    return [line.strip() for line in lines if line.strip()]
