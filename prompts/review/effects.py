"""The effect of an action on prompts, as a hash: a token of a review is valid for one effect."""

from collections.abc import Iterable
from hashlib import sha256

from prompts.models import ReleaseItem
from prompts.preview.impact import Impact

# Prompt id, and what the prompt will contain: see the functions below.
EffectEntry = tuple[int, str]


def describe_stored_version(version_id: int) -> str:
    return f"version:{version_id}"


def describe_new_text(text_digest: str) -> str:
    """Describe a version that does not exist yet, by the SHA-256 of its text: its own digest has a salt."""
    return f"text:{text_digest}"


def hash_effect(entries: Iterable[EffectEntry]) -> str:
    """Hash the effect of an action on prompts that had a version before."""
    return sha256(repr(sorted(entries)).encode()).hexdigest()


def hash_release_effect(items: Iterable[ReleaseItem]) -> str:
    """Hash the effect of a release, or of a rollback with unsaved items."""
    return hash_effect(
        (item.prompt_id, describe_stored_version(item.version_id)) for item in items if item.before_id
    )


def hash_impact(impact: Impact) -> str:
    """Hash the effect of saving a draft."""
    return hash_effect(
        (one.prompt.pk, describe_new_text(one.text_digest)) for one in impact.affected if one.prompt
    )
