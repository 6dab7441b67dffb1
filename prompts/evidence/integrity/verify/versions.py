"""Verify versions: every hash, the recorded end of each chain, and that all contents exist."""

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from personas.models import Content, Workspace
from prompts.evidence.integrity.verify.parts import PartChecksums, PartTracker
from prompts.evidence.integrity.verify.row_stream import (
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
from prompts.proof_rows import RowLike, build_version_row
from prompts.publishing.versions.segments import list_content_digests
from prompts.publishing.versions.stored_inputs import list_manifest_digests

TABLE = VersionRow.table
COLUMNS = (
    *("workspace_id", "prompt_id", "number", "digest", "text_digest", "layout", "compiler", "segments"),
    *("tools", "report", "characters", "tokens", "sizes", "lockfile", "causes", "author_label", "message"),
    *("created_at", "previous_hash", "hash", "skill_files"),
)


def iterate_stored_versions(
    workspace: Workspace, prompts: WorkspacePrompts, verifier: "VersionVerifier"
) -> Iterator[StoredRow[VersionRow] | Fault]:
    """Yield the versions with their stored hashes, chain by chain, in order of number."""
    rows = PromptVersion.objects.in_workspace(workspace)
    for batch in prompts.iterate_batches("last_number"):
        batch_rows = rows.filter(prompt_id__in=batch).order_by("prompt_id", "number")
        for row in iterate_rows(batch_rows, COLUMNS, TABLE, timestamp_text="created_at"):
            yield row if isinstance(row, Fault) else build_stored_version(row, prompts, verifier)
    yield from find_orphan_rows(rows, prompts, TABLE)


def build_stored_version(
    row: RowLike, prompts: WorkspacePrompts, verifier: "VersionVerifier"
) -> StoredRow[VersionRow] | Fault:
    prompt_key = prompts.get_key(row.prompt_id)
    try:
        version_row = build_version_row(row, prompt_key, json_digest)
    except READ_ERRORS as error:
        return Fault(
            TABLE, format_version_name(*prompt_key, row.number), f"its content cannot be hashed: {error}"
        )
    verifier.check_version(row)
    return version_row, row.hash, row.previous_hash


class VersionVerifier:
    """Check versions as they are streamed.

    Their contents must exist, and each chain must end with the version that its prompt records.
    """

    def __init__(self, workspace: Workspace, prompts: WorkspacePrompts) -> None:
        self.workspace, self.prompts = workspace, prompts
        self.parts = PartChecksums(workspace, prompts)
        self.ends: dict[int, tuple[int, str, int]] = {}
        self.prompt_id, self.part_tracker = 0, PartTracker()
        self.digests: set[str] = set()
        # Digests still to be looked up, each with the name of a version that uses it.
        self.pending_digests: dict[str, str] = {}
        # Manifests of stored inputs, which name further contents.
        self.pending_manifests: set[str] = set()
        self.missing_contents: list[Fault] = []

    def check_version(self, row: RowLike) -> None:
        if row.prompt_id != self.prompt_id:
            self.prompt_id, self.part_tracker, self.digests = row.prompt_id, PartTracker(), set()
        self.ends[row.prompt_id] = (row.number, row.hash, row.id)
        try:
            self.collect_digests(row)
            self.parts.add_changes(row.prompt_id, row.id, self.part_tracker.list_changes(row))
        except (*READ_ERRORS, KeyError):
            # The segments or the lockfile are malformed, which the hash check has already reported.
            self.parts.unreadable_prompts.add(row.prompt_id)

    def collect_digests(self, row: RowLike) -> None:
        """Collect the digests that the previous version did not use; the others were collected with it."""
        digests = list_content_digests(row.segments, row.tools) | {row.report}
        digests |= {file["content"] for file in row.skill_files}
        digests.add(row.lockfile["inputs"])
        self.pending_manifests.add(row.lockfile["inputs"])
        new = digests - self.digests
        if new:
            name = format_version_name(*self.prompts.get_key(row.prompt_id), row.number)
            self.pending_digests.update(dict.fromkeys(new, name))
        self.digests = digests
        if len(self.pending_digests) > CHUNK_SIZE:
            self.find_missing_contents()

    def find_missing_contents(self) -> None:
        """Look up all pending digests, and add a fault for each digest without content."""
        self.add_manifest_digests()
        rows = Content.objects.in_workspace(self.workspace).filter(digest__in=list(self.pending_digests))
        for digest in rows.values_list("digest", flat=True):
            self.pending_digests.pop(digest, None)
        self.missing_contents += [
            Fault("content", f"content {digest[:16]}…", f"it is missing, but {name} refers to it")
            for digest, name in self.pending_digests.items()
        ]
        self.pending_digests = {}

    def add_manifest_digests(self) -> None:
        """Add the digests that pending manifests name, and those in their lists of parts."""
        named = self.pending_digests
        manifests = {digest: named[digest] for digest in self.pending_manifests if digest in named}
        self.pending_manifests = set()
        lists: dict[str, str] = {}
        for digest, manifest in self.read_json_contents(manifests):
            parts, part_lists = list_manifest_digests(manifest)
            named |= dict.fromkeys([*parts, *part_lists], manifests[digest])
            lists |= dict.fromkeys(part_lists, manifests[digest])
        for digest, parts in self.read_json_contents(lists):
            named |= dict.fromkeys(parts, lists[digest])

    def read_json_contents(self, digests: Iterable[str]) -> Iterator[tuple[str, Any]]:
        """Yield the parsed contents; those that are missing or damaged are reported elsewhere."""
        rows = Content.objects.in_workspace(self.workspace).filter(digest__in=list(digests))
        for digest, data in rows.values_list("digest", "data"):
            with suppress(ValueError):
                yield digest, json.loads(bytes(data or b""))

    def find_end_faults(self) -> Iterator[Fault]:
        """Report chains that do not end where their prompt says: rows at the end were removed or added."""
        for prompt in self.prompts.by_id.values():
            number, last_hash, last_id = self.ends.get(prompt.id, (0, "", None))
            if (number, last_hash, last_id) == (prompt.last_number, prompt.last_hash, prompt.latest_id):
                continue
            name = format_version_name(*prompt.key, max(number, prompt.last_number))
            claim = f"the prompt states version {prompt.last_number} as its newest"
            if number == prompt.last_number:
                yield Fault(TABLE, name, f"{claim}, but with a different ID or hash")
            else:
                yield Fault(TABLE, name, f"{claim}, but the chain ends with {number}")
