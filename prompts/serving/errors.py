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
    default_message = "This key is not allowed to do that."

    def __init__(self, message: str = "", verb: str = "") -> None:
        super().__init__(message)
        # The verb that the key lacks, if that is why the request was refused.
        self.verb = verb


class PromptNotFound(PromptRefused):
    """The workspace has no such agent, channel or label.

    The error is the same if another workspace has them, so that clients learn nothing about it.
    """

    code = "not_found"
    default_message = "Prompt not found."


class LabelNotFound(PromptNotFound):
    """The prompt does not have this label."""

    code = "unknown_label"


class NoVersion(PromptRefused):
    """The prompt exists, but its label points to no version yet, or pointed to none at the requested time."""

    code = "no_version"
    default_message = "This label does not point to a version yet."


class VersionErased(PromptRefused):
    """The version contains text that has been erased."""

    code = "erased"
    default_message = "This version contained text that has been erased. It can no longer be served."


class ServingUnavailable(DomainError):
    """The ledger row could not be written, so no prompt is served."""

    code = "unavailable"

    def __init__(self) -> None:
        super().__init__("Prompts cannot be served right now. Try again shortly.")
