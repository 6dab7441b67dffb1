"""Verify version parts: the table must list exactly the record changes that the versions contain."""

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from hashlib import blake2b

from personas.models import Workspace
from prompts.evidence.integrity.verify.row_stream import WorkspacePrompts, iterate_rows
from prompts.models import PromptVersion, VersionPart
from prompts.proof.faults import Fault
from prompts.proof.hashed_rows import format_chain_name, format_version_name
from prompts.proof_rows import PromptKey, RowLike
from prompts.publishing.versions.lockfile import (
    PartRevisions,
    apply_lockfile,
    diff_part_revisions,
    get_part_revisions,
)

TABLE = "version-part"
COLUMNS = ("prompt_id", "version_id", "kind", "object_id", "revision")
# Kind, id and new revision of a record; None as the revision means that the record was removed.
PartChange = tuple[str, int, int | None]


class PartTracker:
    """List the record changes of each version of one prompt; versions must come in order of number."""

    def __init__(self) -> None:
        self.revisions: PartRevisions = {}
        self.parts: dict[str, str] = {}

    def list_changes(self, version: RowLike) -> list[PartChange]:
        self.parts = apply_lockfile(self.parts, version.lockfile)
        before, self.revisions = (
            self.revisions,
            get_part_revisions(
                [*version.segments, *version.skill_files], self.parts if version.tools else ()
            ),
        )
        changes = diff_part_revisions(before, self.revisions)
        return [(kind, key, revision) for (kind, key), revision in changes.items()]


class PartChecksums:
    """Compare the record changes in versions with the table rows, by one checksum per prompt.

    Hashes of changes found in versions are added and hashes of table rows are subtracted, in any order: if
    both sets are equal, the sum is zero. This does not keep the changes in memory. The hashes are keyed with
    a random secret of this run, so that rows cannot be crafted whose hashes cancel out.
    """

    def __init__(self, workspace: Workspace, prompts: WorkspacePrompts) -> None:
        self.workspace, self.prompts = workspace, prompts
        self.secret = os.urandom(16)
        self.sums: Counter[int] = Counter()
        # Prompts with versions that could not be read; their checksums are meaningless.
        self.unreadable_prompts: set[int] = set()

    def hash_part(self, *part: object) -> int:
        digest = blake2b(repr(part).encode(), digest_size=16, key=self.secret)
        return int.from_bytes(digest.digest(), "big")

    def add_changes(self, prompt: int, version: int, changes: Iterable[PartChange]) -> None:
        for change in changes:
            self.sums[prompt] += self.hash_part(prompt, version, *change)

    def subtract_stored_rows(self) -> Iterator[Fault | None]:
        """Subtract the rows of the table from the checksums."""
        rows = VersionPart.objects.in_workspace(self.workspace).order_by("pk")
        for row in iterate_rows(rows, COLUMNS, TABLE):
            if isinstance(row, Fault):
                yield row
                continue
            self.sums[row.prompt_id] -= self.hash_part(*row[1:])
            yield None

    def find_faults(self) -> Iterator[Fault]:
        """Report prompts whose table rows differ from their versions."""
        wrong = sorted(
            prompt
            for prompt, remainder in self.sums.items()
            if remainder and prompt not in self.unreadable_prompts
        )
        for prompt in wrong:
            name = self.find_first_mismatch(prompt)
            yield Fault(TABLE, f"the index of {name}", "it does not match the version")

    def find_first_mismatch(self, prompt: int) -> str:
        """Name the first version whose table rows differ; slow, so only used after a mismatch."""
        prompt_key = self.prompts.get_key(prompt)
        stored = get_stored_changes(self.workspace, prompt)
        tracker = PartTracker()
        versions = PromptVersion.objects.in_workspace(self.workspace).filter(prompt_id=prompt)
        for version in versions.order_by("number").iterator(chunk_size=200):
            if Counter(tracker.list_changes(version)) != stored.pop(version.pk, Counter()):
                return format_version_name(*prompt_key, version.number)
        return describe_unknown_version(prompt_key, stored)


def get_stored_changes(workspace: Workspace, prompt: int) -> dict[int, Counter[PartChange]]:
    """Count the changes in the table by version id."""
    changes: dict[int, Counter[PartChange]] = defaultdict(Counter)
    rows = VersionPart.objects.in_workspace(workspace).filter(prompt_id=prompt)
    for version, kind, key, revision in rows.values_list("version_id", "kind", "object_id", "revision"):
        changes[version][kind, key, revision] += 1
    return changes


def describe_unknown_version(prompt_key: PromptKey, stored: dict[int, Counter[PartChange]]) -> str:
    return (
        f"a version with the ID {min(stored, default=0)}, which does not belong to "
        f"{format_chain_name(*prompt_key)}"
    )
