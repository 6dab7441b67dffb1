"""Which records each version holds: noted in a table of its own, and to be read from the versions too."""

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from hashlib import blake2b

from personas.models import Workspace
from prompts.hashed_rows import PromptKey, RowLike
from prompts.integrity.verify.row_stream import WorkspacePrompts, iterate_rows
from prompts.models import PromptVersion, VersionPart
from prompts.proof.faults import Fault
from prompts.proof.hashed_rows import format_chain_name, format_version_name
from prompts.versions.lockfile import PartRevisions, apply_lockfile, diff_part_revisions, get_part_revisions

TABLE = "version-part"
COLUMNS = ("prompt_id", "version_id", "kind", "object_id", "revision")
# Kind, id and revision.
PartChange = tuple[str, int, int | None]


class PartTracker:
    """Goes along the versions of one prompt and tells what each has come to hold, or holds no more."""

    def __init__(self) -> None:
        self.held: PartRevisions = {}
        self.parts: dict[str, str] = {}

    def changes(self, version: RowLike) -> list[PartChange]:
        self.parts = apply_lockfile(self.parts, version.lockfile)
        before, self.held = (
            self.held,
            get_part_revisions(version.segments, self.parts if version.tools else ()),
        )
        changed = diff_part_revisions(before, self.held)
        return [(kind, key, revision) for (kind, key), revision in changed.items()]


class PartChecksums:
    """One number per prompt: what its versions say is added, what the table says is taken away.

    Where both say the same nothing is left, in whatever order they were met, and nothing has to be held.
    The marks are made with a secret of this look, so that nobody can choose rows that cancel out.
    """

    def __init__(self, workspace: Workspace, prompts: WorkspacePrompts) -> None:
        self.workspace, self.prompts = workspace, prompts
        self.secret = os.urandom(16)
        self.sums: Counter[int] = Counter()
        # Prompts whose versions could not be read.
        self.spoiled: set[int] = set()

    def mark(self, *part: object) -> int:
        hashed = blake2b(repr(part).encode(), digest_size=16, key=self.secret)
        return int.from_bytes(hashed.digest(), "big")

    def expect(self, prompt: int, version: int, changes: Iterable[PartChange]) -> None:
        for change in changes:
            self.sums[prompt] += self.mark(prompt, version, *change)

    def rows(self) -> Iterator[Fault | None]:
        """Take away what the table says."""
        rows = VersionPart.objects.in_workspace(self.workspace).order_by("pk")
        for row in iterate_rows(rows, COLUMNS, TABLE):
            if isinstance(row, Fault):
                yield row
                continue
            self.sums[row.prompt_id] -= self.mark(*row[1:])
            yield None

    def left(self) -> Iterator[Fault]:
        """Where the table tells something else than the versions."""
        wrong = sorted(prompt for prompt, left in self.sums.items() if left and prompt not in self.spoiled)
        for prompt in wrong:
            name = self.first_wrong(prompt)
            yield Fault(TABLE, f"what is noted of {name}", "it is not what the version itself holds")

    def first_wrong(self, prompt: int) -> str:
        """The first version of which the table tells something else; looked for only when there is one."""
        line = self.prompts.line(prompt)
        noted = get_stored_changes(self.workspace, prompt)
        following = PartTracker()
        versions = PromptVersion.objects.in_workspace(self.workspace).filter(prompt_id=prompt)
        for version in versions.order_by("number").iterator(chunk_size=200):
            if Counter(following.changes(version)) != noted.pop(version.pk, Counter()):
                return format_version_name(*line, version.number)
        return describe_unknown_version(line, noted)


def get_stored_changes(workspace: Workspace, prompt: int) -> dict[int, Counter[PartChange]]:
    """By version, what the table says of it."""
    found: dict[int, Counter[PartChange]] = defaultdict(Counter)
    rows = VersionPart.objects.in_workspace(workspace).filter(prompt_id=prompt)
    for version, kind, key, revision in rows.values_list("version_id", "kind", "object_id", "revision"):
        found[version][kind, key, revision] += 1
    return found


def describe_unknown_version(line: PromptKey, noted: dict[int, Counter[PartChange]]) -> str:
    """What is noted of a version that the prompt does not have."""
    return f"a version with the id {min(noted, default=0)}, which is none of {format_chain_name(*line)}"
