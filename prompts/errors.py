"""What can go wrong with labels, releases and replays, worded for the person who asked."""

from personas.errors import DomainError


class UnknownLabel(DomainError):
    """A label that does not stand on this prompt."""

    code = "unknown_label"


class StrangeVersion(DomainError):
    """A version of some other prompt."""

    code = "strange_version"


class NotAllowed(DomainError):
    """Something the rules of labels and releases forbid to this person."""

    code = "not_allowed"


class MovedMeanwhile(DomainError):
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


class NothingThen(DomainError):
    """A moment at which there was no such prompt yet."""

    code = "nothing_then"
