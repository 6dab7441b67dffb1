"""Model fields: single-line text, multi-line text and compact JSON. Also the lookup `in_joined`.

The text fields reject characters that cannot be stored or shown safely.
"""

import json
import re
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext as _

# Lone surrogates cannot be encoded as UTF-8, PostgreSQL rejects NUL, and other control characters in a text
# are mistakes.
FORBIDDEN_CHARACTERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
LINE_BREAKS = re.compile(r"[\t\n\r\x0b\x0c\x85\u2028\u2029]")


def validate_characters(value: str) -> None:
    """Raise ValidationError for the first forbidden character."""
    if match := FORBIDDEN_CHARACTERS.search(value):
        message = _("The character U+%(code)s at position %(at)d is not allowed. Remove it.")
        params = {"code": f"{ord(match.group()):04X}", "at": match.start() + 1}
        raise ValidationError(message, code="control_character", params=params)


def validate_single_line(value: str) -> None:
    if LINE_BREAKS.search(value):
        raise ValidationError(_("Must be a single line."), code="line_break")


class LineField(models.CharField[str, str]):
    """One line of text, stripped of surrounding spaces."""

    default_validators = [validate_single_line, validate_characters]

    def to_python(self, value: Any) -> Any:
        value = super().to_python(value)
        return value.strip() if isinstance(value, str) else value


class ProseField(models.TextField[str, str]):
    """Multi-line text with LF line endings and a checked maximum length."""

    default_validators = [validate_characters]

    def to_python(self, value: Any) -> Any:
        value = super().to_python(value)
        return value.replace("\r\n", "\n").replace("\r", "\n") if isinstance(value, str) else value

    def validate(self, value: Any, model_instance: models.Model | None) -> None:
        super().validate(value, model_instance)
        if not self.blank and not value.strip():
            raise ValidationError(self.error_messages["blank"], code="blank")
        if self.max_length is not None and len(value) > self.max_length:
            message = _("Too long: %(size)d characters. The limit is %(limit)d.")
            raise ValidationError(message, "max_length", {"size": len(value), "limit": self.max_length})


if TYPE_CHECKING:
    Text = models.TextField[Any, Any]
else:
    Text = models.TextField


class CompactJSONField(Text):
    """JSON stored as text, for values that no query filters on. Text takes half the space of `jsonb`."""

    # For the type checker: the field accepts and returns any JSON value.
    _pyi_private_set_type: Any
    _pyi_private_get_type: Any

    def get_prep_value(self, value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    def from_db_value(self, value: str, expression: Any, connection: Any) -> Any:
        """Parse the JSON. Invalid JSON is returned as text and does not raise an error.

        The verification of the row's hash then reports the damage.
        """
        try:
            return json.loads(value)
        except (ValueError, TypeError):
            return value

    def get_placeholder(self, value: Any, compiler: Any, connection: Any) -> str:
        """Opt out of Django's bulk insert with UNNEST.

        UNNEST sends the values as an array literal, in which every quotation mark of the JSON is escaped.
        That is slow.
        """
        return "%s"

    def to_python(self, value: Any) -> Any:
        return json.loads(value) if isinstance(value, str) else value

    def value_to_string(self, obj: models.Model) -> str:
        return self.get_prep_value(self.value_from_object(obj))


# Separates the texts in the lookup below.
JOINED_BY = ","


@models.CharField.register_lookup
class InJoinedList(models.Lookup[Any]):
    """`digest__in_joined=",".join(digests)`: the column is one of these texts, which contain no commas.

    psycopg takes longer to convert some hundred parameters of `__in` than PostgreSQL takes for the query. The
    SQL is the same for every number of texts, so a query with this lookup can be compiled.
    """

    lookup_name = "in_joined"

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        column, text, params = self.process_both(compiler, connection)
        return f"{column} = ANY(string_to_array({text}, '{JOINED_BY}'))", params

    def as_sqlite(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        """SQLite cannot split a text, but it can read JSON."""
        column, text, params = self.process_both(compiler, connection)
        array = f"""'["' || replace({text}, '{JOINED_BY}', '","') || '"]'"""
        return f"{column} IN (SELECT value FROM json_each({array}))", params  # noqa: S608  # no values

    def process_both(self, compiler: Any, connection: Any) -> tuple[str, str, tuple[Any, ...]]:
        """Return the SQL of both sides, and the parameters of both."""
        column, column_params = self.process_lhs(compiler, connection)
        text, text_params = self.process_rhs(compiler, connection)
        return column, text, (*column_params, *text_params)


@models.IntegerField.register_lookup
@models.ForeignKey.register_lookup
class InJoinedIntegers(InJoinedList):
    """`prompt__in_joined="1,2,3"`: the column is one of these integers."""

    # The right-hand side is a joined text, so it is not converted to a value of the column.
    prepare_rhs = False

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        column, text, params = self.process_both(compiler, connection)
        return f"{column} = ANY(string_to_array({text}, '{JOINED_BY}')::bigint[])", params

    def as_sqlite(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        column, text, params = self.process_both(compiler, connection)
        return f"{column} IN (SELECT value FROM json_each('[' || {text} || ']'))", params  # noqa: S608  # no values
