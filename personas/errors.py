"""Domain errors, with messages that are shown to users and API clients."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.utils.functional import Promise
from django.utils.translation import gettext as _

from personas.ui.display_names import get_display_name

if TYPE_CHECKING:
    from personas.records.models import Record


class DomainError(Exception):
    """A domain rule rejects the requested change. The message is shown to the user or API client."""

    code = "refused"
    # Seconds until the same request may succeed; None if that is unknown.
    retry_after: int | None = None

    def __init__(self, message: str | Promise) -> None:
        self.message = str(message)
        super().__init__(self.message)


class InvalidInput(DomainError):
    """Some values are invalid. `errors` holds the messages by field name."""

    code = "invalid"

    def __init__(self, errors: Mapping[str, Sequence[str | Promise]]) -> None:
        self.errors = {field: [str(text) for text in texts] for field, texts in errors.items()}
        super().__init__("; ".join(f"{field}: {' '.join(texts)}" for field, texts in self.errors.items()))

    @classmethod
    def on(cls, field: str, message: str | Promise) -> "InvalidInput":
        return cls({field: [message]})

    @classmethod
    def from_validation(cls, error: ValidationError) -> "InvalidInput":
        messages: dict[str, list[str]] = {}
        errors_by_field = (
            error.error_dict if hasattr(error, "error_dict") else {NON_FIELD_ERRORS: error.error_list}
        )
        for name, errors in errors_by_field.items():
            for field_error in errors:
                field, texts = _locate_error(name, field_error)
                messages.setdefault(field, []).extend(texts)
        return cls(messages)


def _locate_error(name: str, error: ValidationError) -> tuple[str, list[str]]:
    """Return the field and the messages of a validation error.

    Django reports a value that is not unique in the workspace as an error of the whole form. Such an error is
    moved to the field with that value.
    """
    if error.code == "unique_together" and error.params:
        fields = [field for field in error.params["unique_check"] if field != "workspace"]
        kind = get_display_name(str(error.params["model_name"]).lower().replace(" ", "_")).lower()
        if len(fields) == 1:
            message = _(
                "Another %(kind)s in this workspace, possibly archived, already has this "
                "value. Choose a different value."
            ) % {"kind": kind}
            return fields[0], [message]
    return name, error.messages


class EditConflict(DomainError):
    """Optimistic locking conflict: the record was changed after the client had read it."""

    code = "conflict"

    def __init__(self, record: "Record", expected: int) -> None:
        self.record, self.expected = record, expected
        super().__init__(
            _(
                "This record was changed after you opened it. You edited revision "
                "%(expected)s, but the current revision is %(revision)s."
            )
            % {"expected": expected, "revision": record.revision}
        )


class RecordInUse(DomainError):
    """The record cannot be removed, because other records still refer to it."""

    code = "in_use"


class RecordErased(DomainError):
    """The record cannot be changed, because its text was erased permanently."""

    code = "erased"
