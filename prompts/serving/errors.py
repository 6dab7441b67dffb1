"""Why no prompt was handed out; what a stranger must not learn is not in the words."""

from typing import ClassVar

from personas.errors import DomainError


class PromptRefused(DomainError):
    """No prompt for this caller; nothing was recorded."""

    words: ClassVar[str]

    def __init__(self, message: str = "") -> None:
        super().__init__(message or self.words)


class InvalidKey(PromptRefused):
    """Unknown, expired or revoked: which of them is nobody's business but the owner's."""

    code = "bad_key"
    words = "This key is not valid."


class OutOfScope(PromptRefused):
    """A good key, for something else."""

    code = "out_of_scope"
    words = "This key may not be used for that."


class PromptNotFound(PromptRefused):
    """No such agent, channel or label here; those of other workspaces are no different."""

    code = "not_found"
    words = "There is no such prompt."


class NoVersion(PromptRefused):
    """The prompt is known, and nothing was built or released for it by then."""

    code = "no_version"
    words = "There is no version to hand out yet."


class VersionErased(PromptRefused):
    """The version held words that were erased since."""

    code = "erased"
    words = "This version held words that have been erased. It is not handed out any more."


class ServingUnavailable(DomainError):
    """The record could not be written: no record, no prompt."""

    code = "unavailable"

    def __init__(self) -> None:
        super().__init__("Prompts cannot be handed out right now. Try again in a moment.")
