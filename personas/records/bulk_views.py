"""One verb for many records: each as if it were alone, all in one transaction, told in one sentence."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from personas.errors import DomainError
from personas.models import Record
from personas.roles import Permission, has_permission
from personas.tenancy.middleware import WorkspaceRequest, describe_required_roles
from personas.ui.responses import get_back_url
from personas.ui.toasts import add_toast

M = TypeVar("M", bound=Model)
R = TypeVar("R", bound=Record)
# Four pages of a list: nobody ticks more by hand.
MAX_BULK_ROWS = 200
MAX_SHOWN_REFUSALS = 3


@dataclass(frozen=True)
class BulkAction:
    """A button under a list; the family's `<name>_verb` does it to one record."""

    name: str
    label: Any
    done: Any  # “Archived”, before a number
    icon: str = ""
    tone: str = ""
    # Whoever may write to the kind, unless it says otherwise.
    permission: Permission | None = None
    # Where its form goes, and which verb takes it back.
    route: str = "bulk"
    undo: str = ""
    # On which shelves there is something to do for it; empty means on all.
    shelves: tuple[str, ...] = ()
    # What else the form asks for, as a template beside the button.
    needs_agent: bool = False


ARCHIVE_ACTION = BulkAction(
    "archive",
    gettext_lazy("Archive"),
    gettext_lazy("Archived"),
    icon="archive",
    undo="restore",
    shelves=("", "all"),
)
RESTORE_ACTION = BulkAction(
    "restore",
    gettext_lazy("Restore"),
    gettext_lazy("Restored"),
    icon="restore",
    undo="archive",
    shelves=("archived", "all"),
)
ARCHIVE_ACTIONS = (ARCHIVE_ACTION, RESTORE_ACTION)


@dataclass
class BulkResult(Generic[M]):
    """What became of the chosen rows."""

    done: list[M] = field(default_factory=list)
    refused: list[tuple[M, str]] = field(default_factory=list)

    def words(self, done: str) -> str:
        """“Archived 12; 1 refused: “Fox”: Still used by Juniper.”"""
        said = [f"{done} {len(self.done)}"] if self.done or not self.refused else []
        if self.refused:
            said.append(_("%(count)s refused: %(why)s") % {"count": len(self.refused), "why": self.why()})
        return f"{'; '.join(said).rstrip('.')}."

    def why(self) -> str:
        told = [
            f"“{Truncator(str(row)).chars(60)}”: {reason}"
            for row, reason in self.refused[:MAX_SHOWN_REFUSALS]
        ]
        more = len(self.refused) - len(told)
        if more > 0:
            told.append(ngettext("and %(count)s more", "and %(count)s more", more) % {"count": more})
        return " ".join(told)


class RecordBulkMixin(Generic[R]):
    """What a family of pages does to many of its records at once."""

    name: ClassVar[str]
    write: ClassVar[Permission]
    bulk_verbs: ClassVar[tuple[BulkAction, ...]] = ()
    # The filter that tells on which shelf the rows of a list stand.
    shelf_filter: ClassVar[str] = "shelf"

    def rows(self, request: WorkspaceRequest) -> QuerySet[R]:
        raise NotImplementedError

    def bulk(self, request: WorkspaceRequest, route: str = "bulk") -> HttpResponse:
        """Carry out the verb that was pressed on what was ticked, and go back to the list."""
        said = request.POST.get("verb", "")
        verb = next((one for one in self.bulk_verbs if (one.name, one.route) == (said, route)), None)
        if verb is None:
            messages.error(request, _("Press one of the buttons under the list."))
        elif not self.may_press(request, verb):
            raise PermissionDenied(describe_required_roles(verb.permission or self.write))
        else:
            self.carry_out_on_all(request, verb, parse_row_ids(request.POST.getlist("chosen")))
        return redirect(get_back_url(request, reverse(f"{self.name}:list", args=[request.workspace.slug])))

    def carry_out_on_all(self, request: WorkspaceRequest, verb: BulkAction, ids: Sequence[int]) -> None:
        rows = list(self.rows(request).filter(pk__in=ids).order_by("pk"))
        if not rows:
            messages.error(request, _("Tick the rows first, then press a button."))
            return
        act = getattr(self, f"{verb.name}_verb")
        outcome = apply_to_rows(rows, lambda row: act(row, request))
        undo_url = reverse(f"{self.name}:{verb.route}", args=[request.workspace.slug]) if verb.undo else ""
        show_bulk_result(request, outcome, str(verb.done), undo_url=undo_url, undo=verb.undo)

    def may_press(self, request: WorkspaceRequest, verb: BulkAction) -> bool:
        return has_permission(request.membership.role, verb.permission or self.write)

    def bulk_shown(self, request: WorkspaceRequest, filters: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The buttons under a list for this person; none where there is nothing to press."""
        shelves = (str(entry["value"]) for entry in filters if entry["name"] == self.shelf_filter)
        shelf = next(shelves, "all")
        return [
            {"verb": verb, "url": reverse(f"{self.name}:{verb.route}", args=[request.workspace.slug])}
            for verb in self.bulk_verbs
            if self.may_press(request, verb) and (not verb.shelves or shelf in verb.shelves)
        ]


def parse_row_ids(values: Iterable[str]) -> list[int]:
    """Ids out of a form; an undo says them all in one field. Whatever else was sent is no choice."""
    words = [word for value in values for word in value.split(",")]
    found = [int(word) for word in words if word.isascii() and word.isdecimal() and len(word) < 16]
    return found[:MAX_BULK_ROWS]


@transaction.atomic
def apply_to_rows(rows: Iterable[M], act: Callable[[M], object]) -> BulkResult[M]:
    """One refusal stops no other; together, so that each prompt they feed is built once."""
    outcome: BulkResult[M] = BulkResult()
    for row in rows:
        try:
            act(row)
        except DomainError as error:
            outcome.refused.append((row, error.message))
        else:
            outcome.done.append(row)
    return outcome


def show_bulk_result(
    request: HttpRequest, outcome: BulkResult[Any], done: str, *, undo_url: str = "", undo: str = ""
) -> None:
    words = outcome.words(done)
    if outcome.refused:
        level = messages.warning if outcome.done else messages.error
        level(request, words)
        return
    # What stood on that shelf before was not put there now: taking it back would move it away.
    moved = [row.pk for row in outcome.done if row.is_archived == (undo == "archive")] if undo else []
    fields = {"verb": undo, "chosen": ",".join(map(str, moved)), "back": get_back_url(request, "")}
    add_toast(request, words, undo_url=undo_url if moved else "", undo_fields=fields)
