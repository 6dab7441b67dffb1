"""What a view that accepts POST declares about the review step, which `prompts/publishing/review` runs.

`require_permission` takes the declaration: a view without one does not accept POST.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

Verb = str | Promise
SAVE: Verb = _("Save")


@dataclass(frozen=True)
class Reviewed:
    """The view may change prompts. The member sees how, before anything is saved."""

    # The verb of the button. A view with several actions reads it from the form.
    verb: Verb | Callable[[HttpRequest], Verb] = SAVE
    # Whether the review has a field for the message of the new revision.
    has_message: bool = False
    # By file input of the form: the field that accepts the text of the file instead. The review page sends
    # the form again, and cannot fill in a file input.
    uploads: Mapping[str, str] = field(default_factory=dict)

    def get_verb(self, request: HttpRequest) -> str:
        return str(self.verb(request) if callable(self.verb) else self.verb)


@dataclass(frozen=True)
class NotReviewed:
    """The view writes nothing that prompts are built from. If it does so nevertheless, it fails."""

    reason: str


@dataclass(frozen=True)
class Automatic:
    """The view changes prompts without a review, mostly by workers that run later."""

    reason: str


ReviewDeclaration = Reviewed | NotReviewed | Automatic
REVERT_REVIEW = Reviewed(_("Restore"))
# The review of a form that imports a file or pasted text.
IMPORT_REVIEW = Reviewed(_("Import"), uploads={"file": "text"})
