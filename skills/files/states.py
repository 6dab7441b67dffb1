"""What state a file is in, and which of its revisions prompts may use: two pure questions."""

from dataclasses import dataclass

from skills.models import Adoption, ContextFile, FileRevision, FileState, Verdict


@dataclass(frozen=True)
class FilePolicy:
    """The rules of the workspace and the source that a file is judged by."""

    adoption: str
    skills_need_trust: bool
    # (file id, digest) of every waiver that still holds.
    waived: frozenset[tuple[int, str]] = frozenset()

    def is_sound(self, file: ContextFile, revision: FileRevision) -> bool:
        """Good, or blocked but waived for exactly this content."""
        if revision.verdict == Verdict.BLOCKED:
            return (file.pk, revision.digest) in self.waived
        return revision.verdict == Verdict.GOOD

    def is_trusted(self, file: ContextFile, revision: FileRevision) -> bool:
        needed = self.skills_need_trust and file.file_kind == "skill"
        return not needed or revision.digest == file.trusted_digest

    def is_usable(self, file: ContextFile, revision: FileRevision) -> bool:
        agreed = self.adoption == Adoption.AUTOMATIC or revision.pk == file.agreed_id
        return agreed and self.is_sound(file, revision) and self.is_trusted(file, revision)


def get_file_state(file: ContextFile, house: FilePolicy) -> FileState:
    """The gravest thing that can be said of the file."""
    if file.is_ignored:
        return FileState.IGNORED
    if not file.is_there:
        return FileState.MISSING
    newest = file.newest
    if file.problem or newest is None or newest.verdict == Verdict.INVALID:
        return FileState.INVALID
    if not house.is_sound(file, newest):
        return FileState.QUARANTINED
    if newest.pk == file.agreed_id:
        return FileState.CURRENT
    return FileState.NEW if file.agreed_id is None else FileState.CHANGED


def get_effective_revision(file: ContextFile, house: FilePolicy) -> FileRevision | None:
    """The newest that may be used; else the one in use, as long as nothing speaks against it."""
    if file.is_ignored or is_removed(file, house):
        return None
    newest, used = file.newest, file.in_force
    if newest is not None and not file.problem and house.is_usable(file, newest):
        return newest
    if used is not None and house.is_sound(file, used) and house.is_trusted(file, used):
        return used
    return None


def is_removed(file: ContextFile, house: FilePolicy) -> bool:
    """A removed file leaves the prompts at once, or when someone agrees to it, as new words come in."""
    return not file.is_there and (house.adoption == Adoption.AUTOMATIC or file.is_settled)
