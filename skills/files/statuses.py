"""Compute the status of a file and the revision that prompts may use. Pure functions."""

from dataclasses import dataclass

from skills.models import Approval, ContextFile, FileRevision, FileStatus, Verdict

# Prompts are served with a warning for each file with one of these statuses, even if an older revision
# is used.
WITHHELD_STATUSES = frozenset({FileStatus.INVALID, FileStatus.QUARANTINED, FileStatus.MISSING})


@dataclass(frozen=True)
class FilePolicy:
    """The settings of the workspace and the source that decide which revisions may be used."""

    approval: str
    skills_need_trust: bool
    # (file id, digest) of every valid waiver.
    waived: frozenset[tuple[int, str]] = frozenset()

    def is_sound(self, file: ContextFile, revision: FileRevision) -> bool:
        """Return whether the revision's verdict is good, or blocked but waived for exactly this digest."""
        if revision.verdict == Verdict.BLOCKED:
            return (file.pk, revision.digest) in self.waived
        return revision.verdict == Verdict.GOOD

    def is_trusted(self, file: ContextFile, revision: FileRevision) -> bool:
        is_trust_needed = self.skills_need_trust and file.file_kind == "skill"
        return not is_trust_needed or revision.digest == file.trusted_digest

    def is_usable(self, file: ContextFile, revision: FileRevision) -> bool:
        is_approved = self.approval == Approval.AUTOMATIC or is_same_content(revision, file.approved)
        return is_approved and self.is_sound(file, revision) and self.is_trusted(file, revision)


def is_same_content(one: FileRevision, other: FileRevision | None) -> bool:
    """Whether two revisions have the same bytes, for example after a file was restored."""
    return other is not None and (one.pk == other.pk or one.digest == other.digest)


def is_live_without_review(file: ContextFile) -> bool:
    """Whether prompts use content that nobody has approved, because its source approves automatically."""
    is_pending = file.status in (FileStatus.NEW, FileStatus.CHANGED)
    return is_pending and file.active_id is not None and file.active_id == file.latest_id


def get_file_status(file: ContextFile, policy: FilePolicy) -> FileStatus:
    """Return the most severe status that applies to the file."""
    if file.is_ignored:
        return FileStatus.IGNORED
    if not file.exists:
        return FileStatus.MISSING
    latest = file.latest
    if file.problem or latest is None or latest.verdict == Verdict.INVALID:
        return FileStatus.INVALID
    if not policy.is_sound(file, latest):
        return FileStatus.QUARANTINED
    if is_same_content(latest, file.approved):
        return FileStatus.CURRENT
    return FileStatus.NEW if file.approved_id is None else FileStatus.CHANGED


def get_effective_revision(file: ContextFile, policy: FilePolicy) -> FileRevision | None:
    """Return the revision that prompts may use, or None.

    This is the latest revision if the policy allows it. Otherwise the active revision stays,
    provided that it is still sound and trusted.
    """
    if file.is_ignored or is_removed(file, policy):
        return None
    latest, used = file.latest, file.active
    if latest is not None and latest.digest == file.rejected_digest:
        # A user reverted this content, so only the approved revision can be used.
        latest, used = None, file.approved
    if latest is not None and not file.problem and policy.is_usable(file, latest):
        return latest
    if used is not None and policy.is_sound(file, used) and policy.is_trusted(file, used):
        return used
    return None


def is_removed(file: ContextFile, policy: FilePolicy) -> bool:
    """Return whether the file is missing and prompts must no longer use it.

    With automatic approval, this applies as soon as the file is missing. Otherwise it applies only after a
    user has dealt with the missing file, usually by approving its removal.
    """
    return not file.exists and (policy.approval == Approval.AUTOMATIC or file.is_resolved)
