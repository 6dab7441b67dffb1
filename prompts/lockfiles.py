"""What a version was built from, by digest; stored as the difference from an earlier one, which is small."""

from collections.abc import Mapping
from typing import Any

from personas.models import digest_of
from prompts.proof.canonical import canonical

# "kind:id@revision" and the digest of what that part says.
Parts = Mapping[str, str]


def packed_lockfile(parts: Parts, pins: Mapping[str, str], base: tuple[int, Parts] | None) -> dict[str, Any]:
    """The parts whole, or as changes to those of the version with the base's number."""
    whole = {**pins, "digest": digest_of(canonical(dict(parts)))}
    if base is None:
        return whole | {"parts": dict(parts)}
    number, before = base
    changed = {key: digest for key, digest in parts.items() if before.get(key) != digest}
    gone = sorted(key for key in before if key not in parts)
    # Differences pile up; past a third of the whole a fresh start is the smaller.
    if 3 * (len(changed) + len(gone)) > len(parts):
        return whole | {"parts": dict(parts)}
    return whole | {"base": number, "parts": changed, "gone": gone}


def unpacked_parts(lockfile: Mapping[str, Any], base: Parts | None) -> dict[str, str]:
    """All parts; base are those of the version that the lockfile names, if it names one."""
    if "base" not in lockfile:
        return dict(lockfile["parts"])
    gone = set(lockfile["gone"])
    kept = {key: digest for key, digest in (base or {}).items() if key not in gone}
    kept.update(lockfile["parts"])
    return kept


def is_whole(lockfile: Mapping[str, Any], parts: Parts) -> bool:
    """Whether these are the parts the lockfile speaks of."""
    return bool(lockfile["digest"] == digest_of(canonical(dict(parts))))
