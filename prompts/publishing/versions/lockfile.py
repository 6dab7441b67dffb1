"""Lockfiles: the parts of a version with their digests, in full or as changes since the previous version."""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Q

from core.db.fast import WriteBatch
from core.shared_cache import SharedLRUCache
from personas.models import Workspace, sha256_digest
from prompts.assembly.segments import is_record_id
from prompts.models import AgentPrompt, PromptVersion, VersionPart
from prompts.proof.canonical import encode_plain_json

# Maps "kind:id@revision" to the digest of the part's text.
PartDigests = Mapping[str, str]
# The number of the last version with a full lockfile, and the parts of the latest version.
PreviousLockfile = tuple[int, PartDigests]

# At least one version in this many stores a full lockfile. A larger number saves storage, but more lockfiles
# must be read to reconstruct one.
FULL_LOCKFILE_INTERVAL = 64


def build_lockfile(
    number: int, parts: PartDigests, settings: str, inputs: str, before: PreviousLockfile | None
) -> dict[str, Any]:
    """Build the full lockfile, or the changes since the previous version if that is smaller.

    The digest covers all parts in both cases. Layout and compiler are columns of the version. `inputs` is the
    digest of the manifest of the inputs: see prompts.publishing.versions.stored_inputs.
    """
    common = {"settings": settings, "inputs": inputs, "digest": hash_parts(parts)}
    if before is None or number - before[0] >= FULL_LOCKFILE_INTERVAL:
        return common | {"parts": dict(parts)}
    base, previous_parts = before
    changed = {key: digest for key, digest in parts.items() if previous_parts.get(key) != digest}
    removed = sorted(key for key in previous_parts if key not in parts)
    if len(changed) + len(removed) >= len(parts):
        return common | {"parts": dict(parts)}
    return common | {"base": base, "parts": changed} | ({"gone": removed} if removed else {})


def get_base_number(number: int, lockfile: Mapping[str, Any]) -> int:
    """Return the number of the version with the full lockfile on which this lockfile is based.

    For a full lockfile, this is `number`, the number of its own version.
    """
    return int(lockfile.get("base", number))


def merge_lockfiles(lockfiles: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return all parts of the last lockfile; the lockfiles must be consecutive and the first must be full."""
    parts: dict[str, str] = {}
    for lockfile in lockfiles:
        parts = apply_lockfile(parts, lockfile)
    return parts


def apply_lockfile(parts: dict[str, str], lockfile: Mapping[str, Any]) -> dict[str, str]:
    """Apply a lockfile to the previous parts; may modify and return `parts` itself."""
    if "base" not in lockfile:
        return dict(lockfile["parts"])
    for key in lockfile.get("gone", ()):
        parts.pop(key, None)
    parts.update(lockfile["parts"])
    return parts


def is_lockfile_valid(lockfile: Mapping[str, Any], parts: PartDigests) -> bool:
    """Whether the parts match the digest of the lockfile."""
    return bool(lockfile["digest"] == hash_parts(parts))


def hash_parts(parts: PartDigests) -> str:
    return sha256_digest(encode_plain_json(dict(parts)))


# A PartKey is the kind and id of a record. PartRevisions maps it to the revision that a version uses.
PartKey = tuple[str, int]
PartRevisions = dict[PartKey, int]


def get_part_revisions(rows: Iterable[Mapping[str, Any]], tool_names: Iterable[str] = ()) -> PartRevisions:
    """Return the revisions of the records in stored segments and skill files, and of the tools.

    `tool_names` are names from a lockfile such as "tool:7@2"; names of other kinds are ignored.
    """
    revisions: PartRevisions = {}
    for row in rows:
        origin = row.get("origin", {})
        if is_record_id(origin.get("id", "")):
            revisions[origin["kind"], int(origin["id"])] = origin.get("revision", 0)
    for name in tool_names:
        kind, _, rest = name.partition(":")
        key, _, revision = rest.partition("@")
        if kind == "tool" and is_record_id(key):
            revisions[kind, int(key)] = int(revision)
    return revisions


def diff_part_revisions(before: PartRevisions, after: PartRevisions) -> dict[PartKey, int | None]:
    """Return added records and changed revisions; None as the revision means removed."""
    changed: dict[PartKey, int | None] = {
        part: revision for part, revision in after.items() if before.get(part) != revision
    }
    return changed | {part: None for part in before if part not in after}


# How many latest versions a process caches the parts of.
MAX_CACHED_PARTS = 500


class PreviousParts(NamedTuple):
    """The lockfile and the record revisions of the latest version, with which the next one is compared.

    The lockfile is None if the next lockfile must be stored in full.
    """

    lockfile: PreviousLockfile | None
    revisions: PartRevisions


# Keyed by version id.
CACHED_PARTS: SharedLRUCache[int, PreviousParts] = SharedLRUCache(MAX_CACHED_PARTS)


def get_previous_parts(
    workspace: Workspace | int, prompts: Sequence[AgentPrompt]
) -> dict[int, PreviousParts]:
    """Return the previous parts of all prompts that have a version.

    Versions never change, so the parts of the latest versions that this process stored or read are cached.
    For the others it takes two queries.
    """
    known: dict[int, PreviousParts] = {}
    latest: dict[int, PromptVersion] = {}
    for prompt in prompts:
        if prompt.latest is None:
            continue
        if (parts := CACHED_PARTS.find(prompt.latest.pk)) is not None:
            known[prompt.pk] = parts
        else:
            latest[prompt.pk] = prompt.latest
    return known | load_previous_parts(workspace, latest)


def load_previous_parts(
    workspace: Workspace | int, latest: Mapping[int, PromptVersion]
) -> dict[int, PreviousParts]:
    """Load the parts of these versions, which are given by the ids of their prompts."""
    if not latest:
        return {}
    chains = get_lockfile_chains(workspace, latest)
    rows = PromptVersion.objects.in_workspace(workspace).filter(pk__in=[row.pk for row in latest.values()])
    previous = {}
    columns = ("prompt_id", "segments", "tools", "skill_files")
    for prompt, segments, tools, skill_files in rows.values_list(*columns):
        version, parts = latest[prompt], merge_lockfiles(chains[prompt])
        # If the digest does not match, the chain is not continued: the next lockfile is stored in full.
        is_valid = is_lockfile_valid(version.lockfile, parts)
        lockfile = (get_base_number(version.number, version.lockfile), parts) if is_valid else None
        revisions = get_part_revisions([*segments, *skill_files], parts if tools else ())
        previous[prompt] = PreviousParts(lockfile, revisions)
    cache_parts({latest[prompt].pk: parts for prompt, parts in previous.items()})
    return previous


def cache_parts(parts: Mapping[int, PreviousParts]) -> None:
    """Keep the parts of versions, given by id, once they are committed.

    If the transaction is rolled back, SQLite gives the id to another version.
    """

    def store() -> None:
        for version, one in parts.items():
            CACHED_PARTS.store(version, one)

    transaction.on_commit(store)


def get_lockfile_chains(
    workspace: Workspace | int, latest: Mapping[int, PromptVersion]
) -> dict[int, list[dict[str, Any]]]:
    """Return for each prompt its lockfiles from the last full one to that of the latest version.

    If the lockfile of every latest version is full, this makes no query.
    """
    chains: dict[int, list[dict[str, Any]]] = {prompt: [] for prompt in latest}
    conditions = []
    for prompt, version in latest.items():
        base = get_base_number(version.number, version.lockfile)
        if base < version.number:
            conditions.append(Q(prompt=prompt, number__gte=base, number__lt=version.number))
    if conditions:
        rows = (
            PromptVersion.objects.in_workspace(workspace).filter(reduce(or_, conditions)).order_by("number")
        )
        for prompt, lockfile in rows.values_list("prompt_id", "lockfile"):
            chains[prompt].append(lockfile)
    for prompt, version in latest.items():
        chains[prompt].append(version.lockfile)
    return chains


def save_part_changes(
    versions: Iterable[tuple[PromptVersion, PartDigests]],
    before: Mapping[int, PreviousParts],
    batch: WriteBatch | None = None,
) -> None:
    """Store the record changes since the previous version: an edit of one record adds one row."""
    rows, new = [], {}
    for version, parts in versions:
        previous = before.get(version.prompt_id)
        rows_with_origin = [*version.segments, *version.skill_files]
        revisions = get_part_revisions(rows_with_origin, parts if version.tools else ())
        base = get_base_number(version.number, version.lockfile)
        new[version.pk] = PreviousParts((base, parts), revisions)
        rows += [
            VersionPart(
                workspace_id=version.workspace_id,
                prompt=version.prompt,
                version=version,
                kind=kind,
                object_id=key,
                revision=revision,
            )
            for (kind, key), revision in diff_part_revisions(
                previous.revisions if previous else {}, revisions
            ).items()
        ]
    VersionPart.objects.insert(rows, batch_size=1_000, batch=batch)
    cache_parts(new)
