"""Errors of the serving path. Their messages are sent to clients and disclose nothing about other data."""

from typing import ClassVar

from personas.api.authentication import INVALID_KEY_DETAIL
from personas.errors import DomainError


class PromptRefused(DomainError):
    """The request was refused: no prompt is served and no ledger row written."""

    default_message: ClassVar[str]

    def __init__(self, message: str = "") -> None:
        super().__init__(message or self.default_message)


class InvalidKey(PromptRefused):
    """The key is unknown, expired or revoked; the message does not disclose which."""

    code = "invalid_key"
    default_message = INVALID_KEY_DETAIL


class OutOfScope(PromptRefused):
    """The key is valid, but its scopes do not cover the request."""

    code = "out_of_scope"
    default_message = "This key may not be used for that."

    def __init__(self, message: str = "", verb: str = "") -> None:
        super().__init__(message)
        # The verb that the key needs, if that is the reason.
        self.verb = verb


class PromptNotFound(PromptRefused):
    """The workspace has no such agent, channel or label.

    The error is the same if another workspace has them, so that clients learn nothing about it.
    """

    code = "not_found"
    default_message = "There is no such prompt."


class LabelNotFound(PromptNotFound):
    """The prompt has no such label."""

    code = "unknown_label"


class NoVersion(PromptRefused):
    """The prompt exists, but its label points to no version yet, or pointed to none at the requested time."""

    code = "no_version"
    default_message = "There is no version to serve yet."


class VersionErased(PromptRefused):
    """The version contains text that has been erased."""

    code = "erased"
    default_message = "This version held words that have been erased. It is not handed out any more."


class InputsNotStored(PromptRefused):
    """The call changes the inputs of a version that was built before versions stored their inputs."""

    code = "inputs_not_stored"
    default_message = (
        "This version was built before versions stored their inputs, so data, mission, limits, tools and "
        "directories cannot be given with the call. Release a newer version of the prompt."
    )


class ServingUnavailable(DomainError):
    """The ledger row could not be written, so no prompt is served."""

    code = "unavailable"

    def __init__(self) -> None:
        super().__init__("Prompts cannot be handed out right now. Try again in a moment.")
