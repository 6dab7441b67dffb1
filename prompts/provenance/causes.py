"""Why a version was built, in words."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from personas.models import Workspace
from personas.ui.display_names import title_of
from prompts.provenance.origins import KINDS, RevisionKey, revisions_said

# Of many causes the last ones say enough; the version keeps more.
SHOWN = 3
OTHER_KINDS = {
    "refresh": _("A look at"),
    "rebuild": _("Built anew"),
    "compiler": _("A newer compiler"),
    "source": _("Source"),
    "rule_set": _("Rule set"),
}


@dataclass(frozen=True)
class Cause:
    """One reason; the name is a tenant's word, so pages set it apart from ours."""

    words: str
    name: str = ""
    revision: int = 0

    def __str__(self) -> str:
        name = f" “{self.name}”" if self.name else ""
        said = f"{self.words}{name}"
        if not self.revision:
            return said
        return gettext("%(cause)s revision %(number)s") % {"cause": said, "number": self.revision}


def causes_in_words(
    workspace: Workspace | int,
    lists: Sequence[Sequence[Mapping[str, Any]]],
    shown: int = SHOWN,
    said: Mapping[RevisionKey, tuple[str, str]] | None = None,
) -> list[list[Cause]]:
    """For each version's causes, the last few in words, newest first; one query for all, or none."""
    last = [list(reversed(causes))[:shown] for causes in lists]
    if said is None:
        said = revisions_said(workspace, keys_in(cause for causes in last for cause in causes))
    return [list(dict.fromkeys(in_words(cause, said) for cause in causes)) for causes in last]


def keys_in(causes: Iterable[Mapping[str, Any]]) -> list[RevisionKey]:
    return [key for cause in causes if (key := key_of(cause))]


def key_of(cause: Mapping[str, Any]) -> RevisionKey | None:
    if isinstance(cause.get("id"), int) and isinstance(cause.get("revision"), int):
        return str(cause["kind"]), cause["id"], cause["revision"]
    return None


def in_words(cause: Mapping[str, Any], said: Mapping[RevisionKey, tuple[str, str]]) -> Cause:
    kind, key = str(cause.get("kind", "")), key_of(cause)
    known = KINDS[kind].words if kind in KINDS else OTHER_KINDS.get(kind)
    words = str(known or title_of(kind))
    if key is None:
        return Cause(words, str(cause.get("source", "")))
    return Cause(words, said.get(key, ("", ""))[0], key[2])
