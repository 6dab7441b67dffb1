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
    """A request that a domain rule rejects; the message is shown to the user."""

    code = "refused"

    def __init__(self, message: str | Promise) -> None:
        self.message = str(message)
        super().__init__(self.message)


class InvalidInput(DomainError):
    """Invalid values, with messages by field."""

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

    A uniqueness error within the workspace is reported on its own field instead of on the whole form.
    """
    if error.code == "unique_together" and error.params:
        fields = [field for field in error.params["unique_check"] if field != "workspace"]
        kind = get_display_name(str(error.params["model_name"]).lower().replace(" ", "_")).lower()
        if len(fields) == 1:
            message = _("Another %(kind)s of this workspace, perhaps an archived one, has this already.") % {
                "kind": kind
            }
            return fields[0], [message]
    return name, error.messages


class EditConflict(DomainError):
    """Optimistic locking conflict: the record was saved after the caller had read it."""

    code = "conflict"

    def __init__(self, record: "Record", expected: int) -> None:
        self.record, self.expected = record, expected
        super().__init__(
            _("This was changed after you opened it: revision %(expected)s is now %(revision)s.")
            % {"expected": expected, "revision": record.revision}
        )


class RecordInUse(DomainError):
    """A record that other records still refer to."""

    code = "in_use"


class RecordErased(DomainError):
    """A record whose text was erased for good."""

    code = "erased"
