"""Text columns that refuse what no prompt, page or log could carry safely."""

import re
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext as _

# Lone surrogates cannot be written as UTF-8, PostgreSQL refuses NUL, and the others arrive only by accident.
UNWRITABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
LINE_BREAKS = re.compile(r"[\t\n\r\x0b\x0c\x85\u2028\u2029]")


def refuse_unwritable(value: str) -> None:
    """Name the first character that may not be stored."""
    if found := UNWRITABLE.search(value):
        message = _("The character U+%(code)s at position %(at)d cannot be stored.")
        params = {"code": f"{ord(found.group()):04X}", "at": found.start() + 1}
        raise ValidationError(message, code="control_character", params=params)


def refuse_line_breaks(value: str) -> None:
    if LINE_BREAKS.search(value):
        raise ValidationError(_("This must be a single line."), code="line_break")


class LineField(models.CharField[str, str]):
    """One line of text, stripped of surrounding spaces."""

    default_validators = [refuse_line_breaks, refuse_unwritable]

    def to_python(self, value: Any) -> Any:
        value = super().to_python(value)
        return value.strip() if isinstance(value, str) else value


class ProseField(models.TextField[str, str]):
    """Text of many lines, its line ends always LF, its length always bounded."""

    default_validators = [refuse_unwritable]

    def to_python(self, value: Any) -> Any:
        value = super().to_python(value)
        return value.replace("\r\n", "\n").replace("\r", "\n") if isinstance(value, str) else value

    def validate(self, value: Any, model_instance: models.Model | None) -> None:
        super().validate(value, model_instance)
        if self.max_length is not None and len(value) > self.max_length:
            message = _("This has %(size)d characters; at most %(limit)d fit.")
            raise ValidationError(message, "max_length", {"size": len(value), "limit": self.max_length})
