"""What a version was built from, by digest; stored as what changed since the version before."""

from collections.abc import Iterable, Mapping
from typing import Any

from personas.models import digest_of
from prompts.proof.canonical import canonical

# "kind:id@revision" and the digest of what that part says.
Parts = Mapping[str, str]
# The number of the last version that tells its parts whole, and the parts of the latest.
Before = tuple[int, Parts]

# So many versions lean on a whole one: more would be slow to read, fewer would cost more to keep.
STRIDE = 64


def packed_lockfile(number: int, parts: Parts, settings: str, before: Before | None) -> dict[str, Any]:
    """The parts whole, or what became of them since the version before; the digest is over all of them.

    Layout and compiler stand beside it in the version's own row.
    """
    told = {"settings": settings, "digest": parts_digest(parts)}
    if before is None or number - before[0] >= STRIDE:
        return told | {"parts": dict(parts)}
    base, had = before
    changed = {key: digest for key, digest in parts.items() if had.get(key) != digest}
    gone = sorted(key for key in had if key not in parts)
    if len(changed) + len(gone) >= len(parts):
        return told | {"parts": dict(parts)}
    return told | {"base": base, "parts": changed} | ({"gone": gone} if gone else {})


def base_of(number: int, lockfile: Mapping[str, Any]) -> int:
    """The version from which on lockfiles must be read to know all parts of this one."""
    return int(lockfile.get("base", number))


def unpacked_parts(lockfiles: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """All parts of the last of these; the first is whole, and none between is missing."""
    parts: dict[str, str] = {}
    for lockfile in lockfiles:
        parts = next_parts(parts, lockfile)
    return parts


def next_parts(before: dict[str, str], lockfile: Mapping[str, Any]) -> dict[str, str]:
    """The parts after a lockfile; what stood before may be changed by this."""
    if "base" not in lockfile:
        return dict(lockfile["parts"])
    for key in lockfile.get("gone", ()):
        before.pop(key, None)
    before.update(lockfile["parts"])
    return before


def is_whole(lockfile: Mapping[str, Any], parts: Parts) -> bool:
    """Whether these are the parts the lockfile speaks of."""
    return bool(lockfile["digest"] == parts_digest(parts))


def parts_digest(parts: Parts) -> str:
    return digest_of(canonical(dict(parts)))
