"""Versions: every hash from the row itself, every chain to the end its prompt tells, every content there."""

from collections.abc import Iterator

from personas.models import Content, Workspace
from prompts.hashed_rows import RowLike, build_version_row
from prompts.integrity.verify.parts import PartChecksums, PartTracker
from prompts.integrity.verify.row_stream import (
    CHUNK_SIZE,
    READ_ERRORS,
    WorkspacePrompts,
    find_orphan_rows,
    iterate_rows,
)
from prompts.models import PromptVersion
from prompts.proof.canonical import json_digest
from prompts.proof.faults import Fault
from prompts.proof.hashed_rows import StoredRow, VersionRow, format_version_name
from prompts.versions.segments import list_content_digests

TABLE = VersionRow.table
COLUMNS = (
    *("workspace_id", "prompt_id", "number", "digest", "text_digest", "layout", "compiler", "segments"),
    *("tools", "report", "characters", "tokens", "sizes", "lockfile", "causes", "author_label", "message"),
    *("created_at", "previous_hash", "hash"),
)


def iterate_stored_versions(
    workspace: Workspace, prompts: WorkspacePrompts, watch: "VersionVerifier"
) -> Iterator[StoredRow[VersionRow] | Fault]:
    """Chain by chain, in order of number."""
    rows = PromptVersion.objects.in_workspace(workspace)
    for batch in prompts.batches("last_number"):
        some = rows.filter(prompt_id__in=batch).order_by("prompt_id", "number")
        for row in iterate_rows(some, COLUMNS, TABLE, spelled="created_at"):
            yield row if isinstance(row, Fault) else build_stored_version(row, prompts, watch)
    yield from find_orphan_rows(rows, prompts, TABLE)


def build_stored_version(
    row: RowLike, prompts: WorkspacePrompts, watch: "VersionVerifier"
) -> StoredRow[VersionRow] | Fault:
    line = prompts.line(row.prompt_id)
    try:
        made = build_version_row(row, line, json_digest)
    except READ_ERRORS as error:
        return Fault(TABLE, format_version_name(*line, row.number), f"its content cannot be hashed: {error}")
    watch.see(row)
    return made, row.hash, row.previous_hash


class VersionVerifier:
    """Looks at each version on its way past: what it names must be there, and chains must end as told."""

    def __init__(self, workspace: Workspace, prompts: WorkspacePrompts) -> None:
        self.workspace, self.prompts = workspace, prompts
        self.parts = PartChecksums(workspace, prompts)
        self.ends: dict[int, tuple[int, str, int]] = {}
        self.prompt, self.following = 0, PartTracker()
        self.digests: set[str] = set()
        # Digests that some version named first, and which.
        self.named: dict[str, str] = {}
        self.missing: list[Fault] = []

    def see(self, row: RowLike) -> None:
        if row.prompt_id != self.prompt:
            self.prompt, self.following, self.digests = row.prompt_id, PartTracker(), set()
        self.ends[row.prompt_id] = (row.number, row.hash, row.id)
        try:
            self.see_digests(row)
            self.parts.expect(row.prompt_id, row.id, self.following.changes(row))
        except (*READ_ERRORS, KeyError):
            # Segments or a lockfile that are not what they should be: the hash has told already.
            self.parts.spoiled.add(row.prompt_id)

    def see_digests(self, row: RowLike) -> None:
        """Most stand in the version before as well, which has been looked at."""
        digests = list_content_digests(row.segments, row.tools) | {row.report}
        new = digests - self.digests
        if new:
            name = format_version_name(*self.prompts.line(row.prompt_id), row.number)
            self.named.update(dict.fromkeys(new, name))
        self.digests = digests
        if len(self.named) > CHUNK_SIZE:
            self.look_up()

    def look_up(self) -> None:
        """Ask for all of them in one question."""
        rows = Content.objects.in_workspace(self.workspace).filter(digest__in=list(self.named))
        for digest in rows.values_list("digest", flat=True):
            self.named.pop(digest, None)
        self.missing += [
            Fault("content", f"content {digest[:16]}…", f"it is not there, and {name} names it")
            for digest, name in self.named.items()
        ]
        self.named = {}

    def wrong_ends(self) -> Iterator[Fault]:
        """Chains that do not end where their prompt says, and so have lost their last rows, or won some."""
        for prompt in self.prompts.by_id.values():
            number, hashed, key = self.ends.get(prompt.id, (0, "", None))
            if (number, hashed, key) == (prompt.last_number, prompt.last_hash, prompt.latest_id):
                continue
            name = format_version_name(*prompt.line, max(number, prompt.last_number))
            said = f"the prompt's newest is said to be version {prompt.last_number}"
            if number == prompt.last_number:
                yield Fault(TABLE, name, f"{said} with another id or hash than it has")
            else:
                yield Fault(TABLE, name, f"{said}, and the chain ends with {number}")
