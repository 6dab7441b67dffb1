"""Domain errors of labels, releases and replays; their messages are shown to users."""

from personas.errors import DomainError


class UnknownLabel(DomainError):
    """The prompt does not have this label."""

    code = "unknown_label"


class ForeignVersion(DomainError):
    """The version belongs to another prompt."""

    code = "unknown_version"


class NotAllowed(DomainError):
    """The rules of labels and releases do not allow the user to do this."""

    code = "not_allowed"


class OwnChange(NotAllowed):
    """The user requested the release or made one of its changes, so another member must approve it."""


class LabelConflict(DomainError):
    """The label was moved since the client read it."""

    code = "conflict"


class ReleaseClosed(DomainError):
    """The release is no longer open."""

    code = "release_closed"


class NothingToRelease(DomainError):
    """Every label already points to the version to be released."""

    code = "nothing_to_release"


class NoPromptAtTime(DomainError):
    """The prompt did not exist at the requested time."""

    code = "no_version_at_time"


class NoSuchLabelAtTime(NoPromptAtTime):
    """The prompt never had this label."""


class FetchNotFound(DomainError):
    """The workspace has no served prompt with this ledger id or request id."""

    code = "unknown_ledger_entry"


class LedgerRowExpired(DomainError):
    """The ledger row was deleted at the end of its retention period."""

    code = "expired"


class PromptErased(DomainError):
    """Part of the prompt's text has been erased, so it cannot be reproduced."""

    code = "erased"


class ReplayMismatch(DomainError):
    """The digest of the replayed text differs from the recorded one, so stored data was changed."""

    code = "digest_mismatch"
