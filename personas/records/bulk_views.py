"""Bulk actions on lists: apply one action to many records in one transaction and report the result."""

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
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from core.text.shorten import shorten_text
from personas.errors import DomainError
from personas.models import Record
from personas.roles import Permission, has_permission
from personas.tenancy.middleware import WorkspaceRequest, describe_required_roles
from personas.ui.responses import get_back_url
from personas.ui.toasts import add_toast

M = TypeVar("M", bound=Model)
R = TypeVar("R", bound=Record)
# Maximum number of rows per bulk action: four pages of a list, more than a user selects by hand.
MAX_BULK_ROWS = 200
MAX_SHOWN_REFUSALS = 3


@dataclass(frozen=True)
class BulkAction:
    """An action of the bulk bar. The page class's method `apply_<name>` applies it to one row."""

    name: str
    label: Any
    done: Any  # past participle for the result message, such as “Archived” in “Archived: 12 souls.”
    icon: str = ""
    tone: str = ""
    # The required permission; None means the write permission of the page class.
    permission: Permission | None = None
    # `route` is the name of the URL that the form is sent to. `undo` is the name of the opposite action.
    route: str = "bulk"
    undo: str = ""
    # The values of the status filter for which the button is shown; empty means all.
    statuses: tuple[str, ...] = ()
    # Whether the form also contains a select box in which the user must choose an agent.
    needs_agent: bool = False


ARCHIVE_ACTION = BulkAction(
    "archive",
    gettext_lazy("Archive"),
    gettext_lazy("Archived"),
    icon="archive",
    undo="restore",
    statuses=("", "all"),
)
RESTORE_ACTION = BulkAction(
    "restore",
    gettext_lazy("Restore"),
    gettext_lazy("Restored"),
    icon="restore",
    undo="archive",
    statuses=("archived", "all"),
)
ARCHIVE_ACTIONS = (ARCHIVE_ACTION, RESTORE_ACTION)


@dataclass
class BulkResult(Generic[M]):
    """Result of a bulk action: the changed rows, and the refused rows, each with the reason."""

    done: list[M] = field(default_factory=list)
    refused: list[tuple[M, str]] = field(default_factory=list)

    def to_text(self, done: str) -> str:
        """Format the result as a message: “Archived: 12 souls; 1 failed: “Fox”: Still used by Juniper.”"""
        parts = [f"{done}: {format_row_count(self.done)}"] if self.done or not self.refused else []
        if self.refused:
            reasons = self.format_refusals()
            parts.append(_("%(count)s failed: %(why)s") % {"count": len(self.refused), "why": reasons})
        return f"{'; '.join(parts).rstrip('.')}."

    def format_refusals(self) -> str:
        reasons = [
            f"“{shorten_text(str(row), 60)}”: {reason}" for row, reason in self.refused[:MAX_SHOWN_REFUSALS]
        ]
        more = len(self.refused) - len(reasons)
        if more > 0:
            reasons.append(ngettext("and %(count)s more", "and %(count)s more", more) % {"count": more})
        return " ".join(reasons)


def format_row_count(rows: Sequence[Model]) -> str:
    """Format the number of rows with the name of their kind."""
    if not rows:
        return "0"
    names = rows[0]._meta
    return f"{len(rows):,} {names.verbose_name if len(rows) == 1 else names.verbose_name_plural}"


class RecordBulkMixin(Generic[R]):
    """Bulk actions for a record page class."""

    name: ClassVar[str]
    write_permission: ClassVar[Permission]
    bulk_actions: ClassVar[tuple[BulkAction, ...]] = ()
    # The name of the list filter that selects rows by status, such as active or archived.
    status_filter: ClassVar[str] = "shelf"

    def rows(self, request: WorkspaceRequest) -> QuerySet[R]:
        raise NotImplementedError

    def bulk(self, request: WorkspaceRequest, route: str = "bulk") -> HttpResponse:
        """Run the submitted action on the selected rows and redirect to the list."""
        submitted = request.POST.get("verb", ""), route
        actions = (action for action in self.bulk_actions if (action.name, action.route) == submitted)
        action = next(actions, None)
        if action is None:
            messages.error(request, _("Choose an action below the list."))
        elif not self.can_run(request, action):
            raise PermissionDenied(describe_required_roles(action.permission or self.write_permission))
        else:
            self.run_bulk_action(request, action, parse_row_ids(request.POST.getlist("chosen")))
        return redirect(get_back_url(request, reverse(f"{self.name}:list", args=[request.workspace.slug])))

    def run_bulk_action(self, request: WorkspaceRequest, action: BulkAction, ids: Sequence[int]) -> None:
        rows = list(self.rows(request).filter(pk__in=ids).order_by("pk"))
        if not rows:
            messages.error(request, _("Select rows first, then choose an action."))
            return
        apply_action = getattr(self, f"apply_{action.name}")
        result = apply_to_rows(rows, lambda row: apply_action(row, request))
        undo_url = (
            reverse(f"{self.name}:{action.route}", args=[request.workspace.slug]) if action.undo else ""
        )
        show_bulk_result(request, result, str(action.done), undo_url=undo_url, undo=action.undo)

    def can_run(self, request: WorkspaceRequest, action: BulkAction) -> bool:
        return has_permission(request.membership.role, action.permission or self.write_permission)

    def list_bulk_buttons(
        self, request: WorkspaceRequest, filters: list[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """List the buttons of the bulk bar that the member's role and the status filter allow."""
        statuses = (str(entry["value"]) for entry in filters if entry["name"] == self.status_filter)
        status = next(statuses, "all")
        return [
            {"verb": action, "url": reverse(f"{self.name}:{action.route}", args=[request.workspace.slug])}
            for action in self.bulk_actions
            if self.can_run(request, action) and (not action.statuses or status in action.statuses)
        ]


def get_bulk_label(actions: Iterable[BulkAction], request: HttpRequest) -> str:
    """Return the label of the submitted action, which is also the verb of its review."""
    labels = (str(action.label) for action in actions if action.name == request.POST.get("verb"))
    return next(labels, "").rstrip("…")


def parse_row_ids(values: Iterable[str]) -> list[int]:
    """Parse row ids from form values. Parts that are not ids are ignored.

    Each checkbox sends one id as its own value; the undo form sends one value with all ids, separated by
    commas.
    """
    parts = [part for value in values for part in value.split(",")]
    ids = [int(part) for part in parts if part.isascii() and part.isdecimal() and len(part) < 16]
    return ids[:MAX_BULK_ROWS]


@transaction.atomic
def apply_to_rows(rows: Iterable[M], apply_action: Callable[[M], object]) -> BulkResult[M]:
    """Apply the action to each row. A refused row (DomainError) is recorded and does not stop the others.

    All changes are made in one transaction, so that a prompt affected by several rows is built only once.
    """
    result: BulkResult[M] = BulkResult()
    for row in rows:
        try:
            apply_action(row)
        except DomainError as error:
            result.refused.append((row, error.message))
        else:
            result.done.append(row)
    return result


def show_bulk_result(
    request: HttpRequest, result: BulkResult[Any], done: str, *, undo_url: str = "", undo: str = ""
) -> None:
    text = result.to_text(done)
    if result.refused:
        level = messages.warning if result.done else messages.error
        level(request, text)
        return
    # Undo only rows that this action changed. `row` still has the state from before the action, so a row
    # that was archived before an archive action is left out.
    moved = [row.pk for row in result.done if row.is_archived == (undo == "archive")] if undo else []
    fields = {"verb": undo, "chosen": ",".join(map(str, moved)), "back": get_back_url(request, "")}
    add_toast(request, text, undo_url=undo_url if moved else "", undo_fields=fields)
