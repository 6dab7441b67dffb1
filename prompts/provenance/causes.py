"""Why a version was built, in words."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from personas.models import Workspace
from personas.ui.display_names import get_display_name
from prompts.provenance.origins import RECORD_KINDS, RevisionKey, describe_revisions

# Of many causes the last ones say enough; the version keeps more.
MAX_SHOWN_CAUSES = 3
CAUSE_KIND_LABELS = {
    "refresh": _("A look at"),
    "rebuild": _("Built anew"),
    "compiler": _("A newer compiler"),
    "source": _("Source"),
    "rule_set": _("Rule set"),
}


@dataclass(frozen=True)
class CauseLabel:
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


def describe_causes(
    workspace: Workspace | int,
    lists: Sequence[Sequence[Mapping[str, Any]]],
    shown: int = MAX_SHOWN_CAUSES,
    said: Mapping[RevisionKey, tuple[str, str]] | None = None,
) -> list[list[CauseLabel]]:
    """For each version's causes, the last few in words, newest first; one query for all, or none."""
    last = [list(reversed(causes))[:shown] for causes in lists]
    if said is None:
        said = describe_revisions(
            workspace, list_cause_revisions(cause for causes in last for cause in causes)
        )
    return [list(dict.fromkeys(describe_cause(cause, said) for cause in causes)) for causes in last]


def list_cause_revisions(causes: Iterable[Mapping[str, Any]]) -> list[RevisionKey]:
    return [key for cause in causes if (key := get_cause_revision(cause))]


def get_cause_revision(cause: Mapping[str, Any]) -> RevisionKey | None:
    if isinstance(cause.get("id"), int) and isinstance(cause.get("revision"), int):
        return str(cause["kind"]), cause["id"], cause["revision"]
    return None


def describe_cause(cause: Mapping[str, Any], said: Mapping[RevisionKey, tuple[str, str]]) -> CauseLabel:
    kind, key = str(cause.get("kind", "")), get_cause_revision(cause)
    known = RECORD_KINDS[kind].words if kind in RECORD_KINDS else CAUSE_KIND_LABELS.get(kind)
    words = str(known or get_display_name(kind))
    if key is None:
        return CauseLabel(words, str(cause.get("source", "")))
    return CauseLabel(words, said.get(key, ("", ""))[0], key[2])
