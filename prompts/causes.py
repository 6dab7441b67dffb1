"""Why a version was built, in words."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from personas.models import Workspace
from prompts.origins import KINDS, RevisionKey, revisions_said

# Of many causes the last ones say enough; the version keeps more.
SHOWN = 3
OTHER_KINDS = {"source": "Source", "rule_set": "Rule set", "task": "Task"}


def causes_in_words(
    workspace: Workspace | int, lists: Sequence[Sequence[Mapping[str, Any]]], shown: int = SHOWN
) -> list[list[str]]:
    """For each version's causes, the last few in words, newest first; one query for all."""
    last = [list(reversed(causes))[:shown] for causes in lists]
    said = revisions_said(workspace, filter(None, [key_of(cause) for causes in last for cause in causes]))
    return [unrepeated(in_words(cause, said) for cause in causes) for causes in last]


def key_of(cause: Mapping[str, Any]) -> RevisionKey | None:
    if isinstance(cause.get("id"), int) and isinstance(cause.get("revision"), int):
        return str(cause["kind"]), cause["id"], cause["revision"]
    return None


def in_words(cause: Mapping[str, Any], said: Mapping[RevisionKey, tuple[str, str]]) -> str:
    kind, key = str(cause.get("kind", "")), key_of(cause)
    if kind == "refresh":
        return f"A look at “{cause.get('source', '')}”"
    if kind == "rebuild":
        return "Built anew"
    words = KINDS[kind].words if kind in KINDS else OTHER_KINDS.get(kind, kind.replace("_", " ").capitalize())
    if key is None:
        return words
    name = said.get(key, ("", ""))[0]
    return f"{words} “{name}” revision {key[2]}" if name else f"{words} revision {key[2]}"


def unrepeated(words: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(words))
