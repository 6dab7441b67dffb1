"""What can go wrong with labels, releases and replays, worded for the person who asked."""

from personas.errors import DomainError


class UnknownLabel(DomainError):
    """A label that does not stand on this prompt."""

    code = "unknown_label"


class ForeignVersion(DomainError):
    """A version of some other prompt."""

    code = "strange_version"


class NotAllowed(DomainError):
    """Something the rules of labels and releases forbid to this person."""

    code = "not_allowed"


class LabelConflict(DomainError):
    """The label is no longer where the caller saw it."""

    code = "conflict"


class ReleaseClosed(DomainError):
    """A release that has been decided already."""

    code = "release_closed"


class ReleaseVoided(DomainError):
    """What was approved is not what would be released any more."""

    code = "release_voided"


class NothingToRelease(DomainError):
    """Every label stands where it should already."""

    code = "nothing_to_release"


class NoPromptAtTime(DomainError):
    """A moment at which there was no such prompt yet."""

    code = "nothing_then"


class FetchNotFound(DomainError):
    """A ledger row or a request id under which nothing was handed out here."""

    code = "unknown_fetch"


class LedgerRowExpired(DomainError):
    """A ledger row that was let go when its months were over."""

    code = "rolled_off"


class PromptErased(DomainError):
    """A prompt whose words have been erased in part; what is left is not what was said."""

    code = "erased"


class ReplayMismatch(DomainError):
    """A replay that gives other bytes than were recorded: something was changed."""

    code = "not_the_same"
