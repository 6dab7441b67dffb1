"""Describe the stored causes of a version (why it was built) as labels for pages."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from personas.models import Workspace
from personas.ui.display_names import get_display_name
from prompts.publishing.provenance.origins import RECORD_KINDS, RevisionKey, describe_revisions

# A version stores up to 20 causes; lists show only the last few.
MAX_SHOWN_CAUSES = 3
CAUSE_KIND_LABELS = {
    "refresh": _("Refresh of"),
    "rebuild": _("Rebuilt"),
    "compiler": _("New assembly rules"),
    "erasure": _("Erasure"),
    "source": _("Source"),
    "rule_set": _("Discovery rules"),
}


@dataclass(frozen=True)
class CauseLabel:
    """A cause for display. The name is user-supplied text, so pages render it separately from the label."""

    label: str
    name: str = ""
    revision: int = 0

    def __str__(self) -> str:
        name = f" “{self.name}”" if self.name else ""
        text = f"{self.label}{name}"
        if not self.revision:
            return text
        return gettext("%(cause)s revision %(number)s") % {"cause": text, "number": self.revision}


def describe_causes(
    workspace: Workspace | int,
    cause_lists: Sequence[Sequence[Mapping[str, Any]]],
    limit: int = MAX_SHOWN_CAUSES,
    revisions: Mapping[RevisionKey, tuple[str, str]] | None = None,
) -> list[list[CauseLabel]]:
    """Label the last `limit` causes of each version, newest first.

    Runs one query for all versions, or none if the caller passes the result of `describe_revisions`.
    """
    latest = [list(reversed(causes))[:limit] for causes in cause_lists]
    if revisions is None:
        revisions = describe_revisions(
            workspace, list_cause_revisions(cause for causes in latest for cause in causes)
        )
    return [list(dict.fromkeys(describe_cause(cause, revisions) for cause in causes)) for causes in latest]


def list_cause_revisions(causes: Iterable[Mapping[str, Any]]) -> list[RevisionKey]:
    return [key for cause in causes if (key := get_cause_revision(cause))]


def get_cause_revision(cause: Mapping[str, Any]) -> RevisionKey | None:
    if isinstance(cause.get("id"), int) and isinstance(cause.get("revision"), int):
        return str(cause["kind"]), cause["id"], cause["revision"]
    return None


def describe_cause(cause: Mapping[str, Any], revisions: Mapping[RevisionKey, tuple[str, str]]) -> CauseLabel:
    kind, key = str(cause.get("kind", "")), get_cause_revision(cause)
    kind_label = RECORD_KINDS[kind].label if kind in RECORD_KINDS else CAUSE_KIND_LABELS.get(kind)
    label = str(kind_label or get_display_name(kind))
    if key is None:
        return CauseLabel(label, str(cause.get("source", "")))
    return CauseLabel(label, revisions.get(key, ("", ""))[0], key[2])
