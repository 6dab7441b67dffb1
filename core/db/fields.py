"""Text columns that refuse what no prompt, page or log could carry safely."""

import json
import re
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext as _

# Lone surrogates cannot be written as UTF-8, PostgreSQL refuses NUL, and the others arrive only by accident.
FORBIDDEN_CHARACTERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
LINE_BREAKS = re.compile(r"[\t\n\r\x0b\x0c\x85\u2028\u2029]")


def validate_characters(value: str) -> None:
    """Name the first character that may not be stored."""
    if found := FORBIDDEN_CHARACTERS.search(value):
        message = _("The character U+%(code)s at position %(at)d cannot be stored.")
        params = {"code": f"{ord(found.group()):04X}", "at": found.start() + 1}
        raise ValidationError(message, code="control_character", params=params)


def validate_single_line(value: str) -> None:
    if LINE_BREAKS.search(value):
        raise ValidationError(_("This must be a single line."), code="line_break")


class LineField(models.CharField[str, str]):
    """One line of text, stripped of surrounding spaces."""

    default_validators = [validate_single_line, validate_characters]

    def to_python(self, value: Any) -> Any:
        value = super().to_python(value)
        return value.strip() if isinstance(value, str) else value


class ProseField(models.TextField[str, str]):
    """Text of many lines, its line ends always LF, its length always bounded."""

    default_validators = [validate_characters]

    def to_python(self, value: Any) -> Any:
        value = super().to_python(value)
        return value.replace("\r\n", "\n").replace("\r", "\n") if isinstance(value, str) else value

    def validate(self, value: Any, model_instance: models.Model | None) -> None:
        super().validate(value, model_instance)
        if self.max_length is not None and len(value) > self.max_length:
            message = _("This has %(size)d characters; at most %(limit)d fit.")
            raise ValidationError(message, "max_length", {"size": len(value), "limit": self.max_length})


if TYPE_CHECKING:
    Text = models.TextField[Any, Any]
else:
    Text = models.TextField


class CompactJSONField(Text):
    """JSON that no question looks into: as text it takes half the room of PostgreSQL's own kind."""

    # For the type checker: any plain value goes in and comes out.
    _pyi_private_set_type: Any
    _pyi_private_get_type: Any

    def get_prep_value(self, value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    def from_db_value(self, value: str, expression: Any, connection: Any) -> Any:
        """What is no JSON any more is given as it stands: its hash will tell."""
        try:
            return json.loads(value)
        except (ValueError, TypeError):
            return value

    def get_placeholder(self, value: Any, compiler: Any, connection: Any) -> str:
        """Many rows are then written as rows: in arrays every quotation mark is escaped, which is slow."""
        return "%s"

    def to_python(self, value: Any) -> Any:
        return json.loads(value) if isinstance(value, str) else value

    def value_to_string(self, obj: models.Model) -> str:
        return self.get_prep_value(self.value_from_object(obj))
