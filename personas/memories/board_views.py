"""The memory board: columns of proposed, active and superseded memories, with bulk approve and reject."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from personas.errors import DomainError
from personas.memories.board import (
    BOARD_STATUSES,
    BoardColumn,
    MemoryFilter,
    count_memories_by_status,
    list_board_columns,
    list_board_memories,
    parse_memory_filter,
)
from personas.memories.services import approve_memory, reject_memory
from personas.models import Memory, MemoryStatus
from personas.records.bulk_views import BulkAction, get_bulk_label
from personas.records.list_views import build_filter_chip, get_query_param, set_filter_values
from personas.records.views import RecordPages
from personas.roles import Permission, has_permission
from personas.selectors import list_agents
from personas.tenancy.middleware import WorkspaceRequest, require_permission
from personas.ui.responses import get_back_url
from personas.ui.review import Reviewed
from personas.ui.toasts import add_toast, attach_toasts

APPROVE_ACTION = BulkAction(
    "approve",
    gettext_lazy("Approve"),
    gettext_lazy("Approved"),
    icon="check",
    permission=Permission.APPROVE,
    route="decide",
    statuses=("live", "proposed", "all"),
)
REJECT_ACTION = BulkAction(
    "reject",
    gettext_lazy("Reject"),
    gettext_lazy("Rejected"),
    icon="x",
    permission=Permission.APPROVE,
    route="decide",
    statuses=("live", "proposed", "all"),
)
DECISIONS = (APPROVE_ACTION, REJECT_ACTION)
REVOKE_ACTION = BulkAction(
    "archive",
    gettext_lazy("Revoke"),
    gettext_lazy("Revoked"),
    icon="archive",
    statuses=("live", "active", "superseded", "all"),
)
REINSTATE_ACTION = BulkAction(
    "restore",
    gettext_lazy("Reinstate"),
    gettext_lazy("Reinstated"),
    icon="restore",
    statuses=("superseded", "revoked", "all"),
)
AUTHOR_CHOICES = [
    ("", gettext_lazy("Added by anyone")),
    ("people", gettext_lazy("Added by people")),
    ("bots", gettext_lazy("Added by bots")),
]


def find_card_action(request: HttpRequest) -> BulkAction | None:
    """Return the action of the button on a card. There is none if the bulk bar sent the form."""
    return next((action for action in DECISIONS if action.name in request.POST), None)


def get_decision_label(request: HttpRequest) -> str:
    action = find_card_action(request)
    return str(action.label) if action else get_bulk_label(DECISIONS, request)


class MemoryBoardPages(RecordPages[Memory]):
    """The record pages of memories, extended with the board page and its approve and reject actions."""

    bulk_actions = (*DECISIONS, REVOKE_ACTION, REINSTATE_ACTION)
    status_filter = "status"

    def board_filters(self, request: WorkspaceRequest) -> list[dict[str, Any]]:
        agents = list_agents(request.workspace).filter(archived_at=None).prefetch_related(None)
        names = [(str(pk), name) for pk, name in agents.values_list("pk", "name")]
        known_to = [("", _("Any visibility")), ("shared", _("All agents")), *names]
        return [
            {"name": "agent", "label": _("Visible to"), "options": known_to},
            {"name": "told_by", "label": _("Added by"), "options": AUTHOR_CHOICES},
        ]

    def board(self, request: WorkspaceRequest) -> HttpResponse:
        filters = parse_memory_filter(request.GET)
        counts = count_memories_by_status(request.workspace, filters)
        columns = list_board_columns(request.workspace, filters, counts, request.GET.dict())
        open_column = get_query_param(request, "column")
        context = {
            "pages": self,
            "q": filters.query,
            "filters": set_filter_values(request, self.board_filters(request)),
            "chips": [build_filter_chip(request, "source", _("Source"), filters.source)]
            if filters.source
            else [],
            "columns": [build_column_context(request, column) for column in columns],
            "memories": [memory for column in columns for memory in column.memories],
            "shown": open_column if open_column in BOARD_STATUSES else MemoryStatus.PROPOSED,
            "revoked": counts.get(MemoryStatus.REVOKED, 0),
            "is_narrowed": filters != MemoryFilter(),
            "is_empty": not counts,
            "can_write": has_permission(request.membership.role, self.write_permission),
            "bulk": self.list_board_buttons(request),
            "decide_url": reverse("memories:decide", args=[request.workspace.slug]),
        }
        return render(request, "personas/memories/board.html", context)

    def list_board_buttons(self, request: WorkspaceRequest) -> list[dict[str, Any]]:
        url = reverse("memories:decide", args=[request.workspace.slug])
        return [{"verb": action, "url": url} for action in DECISIONS if self.can_run(request, action)]

    def apply_approve(self, memory: Memory, request: WorkspaceRequest) -> Memory:
        return approve_memory(memory, by=request.actor)

    def apply_reject(self, memory: Memory, request: WorkspaceRequest) -> Memory:
        return reject_memory(memory, by=request.actor)

    @require_permission(Permission.APPROVE, Reviewed(get_decision_label))
    def decide(self, request: WorkspaceRequest) -> HttpResponseBase:
        """Approve or reject memories.

        The button on a card sends one form field: its name is the action, its value the memory's id. The
        bulk bar sends the action in the field `verb` and the ids of the selected memories in `chosen`.
        """
        if action := find_card_action(request):
            return self.decide_one(request, action, request.POST[action.name])
        return self.bulk(request, route="decide")

    def decide_one(self, request: WorkspaceRequest, action: BulkAction, key: str) -> HttpResponseBase:
        memory = get_object_or_404(self.rows(request), pk=int(key) if is_row_id(key) else 0)
        try:
            done = getattr(self, f"apply_{action.name}")(memory, request)
        except DomainError as error:
            messages.error(request, error.message)
        else:
            undo_url = self.get_undo_url(request, memory, "revert")
            fields = {"expected": str(done.revision)}
            add_toast(request, f"{action.done}: “{memory}”.", undo_url=undo_url, undo_fields=fields)
        if getattr(request, "htmx", None):
            return attach_toasts(request, self.render_moved_card(request, memory))
        return redirect(get_back_url(request, reverse("memories:board", args=[request.workspace.slug])))

    def render_moved_card(self, request: WorkspaceRequest, before: Memory) -> HttpResponse:
        """Render an htmx fragment: the card in its new column, and the new number of each column.

        The numbers respect the filters of the page in the browser, which are read from HX-Current-URL.
        """
        page = QueryDict((request.headers.get("HX-Current-URL") or "").partition("?")[2])
        counts = count_memories_by_status(request.workspace, parse_memory_filter(page))
        memory = list_board_memories(request.workspace).get(pk=before.pk)
        context = {
            "memory": memory,
            "memories": [memory],
            "is_moved": memory.status != before.status,
            "is_on_board": memory.status in BOARD_STATUSES,
            "counts": [(status, counts.get(status, 0)) for status in BOARD_STATUSES],
            "bulk": self.list_board_buttons(request),
            "decide_url": reverse("memories:decide", args=[request.workspace.slug]),
        }
        return render(request, "personas/memories/_moved.html", context)


def build_column_context(request: WorkspaceRequest, column: BoardColumn) -> dict[str, Any]:
    """Build the template context of a column: its memories, and the URLs of its tab and adjacent pages."""
    params = {name: str(value) for name, value in request.GET.items() if name != "column"}
    page, column_param = column.page, {"column": str(column.status)}
    links = {
        "newer": page.previous_page_number() if page.has_previous() else 0,
        "older": page.next_page_number() if page.has_next() else 0,
    }
    urls = {
        name: "?" + urlencode(params | column_param | {str(column.status): str(number)})
        for name, number in links.items()
        if number
    }
    return {"column": column, "tab": "?" + urlencode(params | column_param), **urls}


def is_row_id(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 16
