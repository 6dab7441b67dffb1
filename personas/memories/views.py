"""Pages of memories, with the actions approve and supersede."""

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.db.models import Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from personas.errors import InvalidInput
from personas.memories.board import MemoryFilter
from personas.memories.board_views import MemoryBoardPages
from personas.memories.forms import MemoryForm, SuccessorForm
from personas.memories.memory_file import import_memories
from personas.memories.services import (
    approve_memory,
    create_memory,
    reinstate_memory,
    revoke_memory,
    supersede_memory,
)
from personas.models import Memory, MemoryStatus
from personas.persona_files.forms import JsonImportForm
from personas.records.list_views import DATE_FIELDS, RecordListing, build_filter_chip
from personas.records.services import FieldValues
from personas.records.views import get_query_param, post_only
from personas.roles import Permission
from personas.selectors import list_agents, list_memories
from personas.tenancy.middleware import WorkspaceRequest, require_permission
from personas.ui.review import IMPORT_REVIEW, Reviewed

STATUS_CHOICES = [
    ("live", gettext_lazy("Proposed and active")),
    *MemoryStatus.choices,
    ("all", gettext_lazy("All")),
]


class MemoryPages(MemoryBoardPages):
    model, form = Memory, MemoryForm
    one, many = gettext_lazy("memory"), gettext_lazy("Memories")
    name, icon, templates = "memories", "memory", "personas/memories"
    lede = gettext_lazy(
        "Facts your agents know. Bots can propose memories for people to approve. "
        "Only active memories are used in prompts."
    )
    key, converter, search_fields = "pk", "int", ("text", "source")
    archive_label, archived_label = gettext_lazy("Revoke"), gettext_lazy("Revoked")
    restore_label = gettext_lazy("Reinstate")
    sorts = {
        "text": ("text",),
        "status": ("status", "created_at"),
        "agent": ("agent__name", "created_at"),
        "from": ("author_label", "created_at"),
        "added": ("created_at",),
    }
    default_sort = "-added"
    export_fields = (
        "pk",
        "text",
        "status",
        "agent__slug",
        "source",
        "author_label",
        "valid_from",
        "valid_until",
        "superseded_by_id",
        *DATE_FIELDS,
    )

    def rows(self, request: WorkspaceRequest) -> QuerySet[Memory]:
        return list_memories(request.workspace)

    def filters(self, request: WorkspaceRequest) -> list[dict[str, Any]]:
        return [
            {"name": "status", "label": _("Status"), "options": STATUS_CHOICES},
            *self.board_filters(request),
        ]

    def filter_rows(self, rows: QuerySet[Memory], chosen: dict[str, str]) -> QuerySet[Memory]:
        status = chosen["status"]
        if status == "live":
            rows = rows.filter(status__in=[MemoryStatus.PROPOSED, MemoryStatus.ACTIVE])
        elif status != "all":
            rows = rows.filter(status=status)
        return MemoryFilter(agent=chosen["agent"], author_kind=chosen["told_by"]).filter_rows(rows)

    def get_listing(self, request: WorkspaceRequest) -> RecordListing[Memory]:
        listing, source = super().get_listing(request), get_query_param(request, "source")[:300]
        if not source:
            return listing
        chips = [build_filter_chip(request, "source", _("Source"), source)]
        return replace(listing, rows=listing.rows.filter(source=source), chips=chips)

    def get_initial(self, request: WorkspaceRequest) -> dict[str, Any]:
        agents = list_agents(request.workspace).prefetch_related(None)
        return {"agent": agents.filter(slug=get_query_param(request, "agent")).first()}

    def create(self, request: WorkspaceRequest, values: FieldValues) -> Memory:
        return create_memory(request.workspace, values, by=request.actor)

    def apply_archive(self, record: Memory, request: WorkspaceRequest) -> Memory:
        return revoke_memory(record, by=request.actor)

    def apply_restore(self, record: Memory, request: WorkspaceRequest) -> Memory:
        return reinstate_memory(record, by=request.actor)

    def detail_context(self, request: WorkspaceRequest, record: Memory) -> dict[str, Any]:
        return {"successor_form": self.successor_form(request, record), "replaces": record.supersedes.all()}

    def more_urls(self) -> list[URLPattern]:
        return [
            path("board/", self.board, name="board"),
            path("import/", self.import_file, name="import"),
            path("decide/", post_only(self.decide), name="decide"),
            path("<int:key>/approve/", post_only(self.approve), name="approve"),
            path("<int:key>/supersede/", post_only(self.supersede), name="supersede"),
        ]

    def get_undo_url(self, request: WorkspaceRequest, before: Memory, undo: str) -> str:
        """Return the URL that undoes an action, or an empty string; `before` is the memory before the action.

        Reinstating sets the status to active. It therefore undoes a revocation only if the memory was active
        before; otherwise there is no undo. Reinstating a superseded memory is undone by restoring its
        previous revision, because revoking it would not make it superseded again.
        """
        if undo == "restore" and before.status != MemoryStatus.ACTIVE:
            return ""
        if undo == "archive" and before.status == MemoryStatus.SUPERSEDED:
            undo = "revert"
        return super().get_undo_url(request, before, undo)

    @require_permission(Permission.EDIT, IMPORT_REVIEW)
    def import_file(self, request: WorkspaceRequest) -> HttpResponse:
        """Import memories.json, and list the created and skipped memories on the same page."""
        form = JsonImportForm(request.POST or None, request.FILES or None)
        context: dict[str, Any] = {"form": form}
        if request.method == "POST" and form.is_valid():
            try:
                context["result"] = import_memories(
                    request.workspace, form.cleaned_data["data"], by=request.actor
                )
            except InvalidInput as error:
                form.add_service_errors(error)
        return self.render_page(request, "import", context, status=422 if form.errors else 200)

    @require_permission(Permission.APPROVE, Reviewed(gettext_lazy("Approve")))
    def approve(self, request: WorkspaceRequest, key: str) -> HttpResponse:
        return self.run_action(
            request,
            key,
            lambda memory, _: approve_memory(memory, by=request.actor),
            _("Approved"),
            undo="revert",
        )

    @require_permission(Permission.EDIT, Reviewed(gettext_lazy("Replace")))
    def supersede(self, request: WorkspaceRequest, key: str) -> HttpResponse:
        memory = self.find(request, key)
        form = self.successor_form(request, memory, request.POST)
        if not form.is_valid():
            messages.error(
                request,
                _("Replace with: %(problem)s")
                % {"problem": form.errors["successor"].as_text().removeprefix("* ")},
            )
            return redirect(self.get_record_url(memory))
        successor = form.cleaned_data["successor"]
        return self.run_action(
            request,
            key,
            lambda row, _: supersede_memory(row, successor, by=request.actor),
            _("Replaced"),
            undo="revert",
        )

    def successor_form(self, request: WorkspaceRequest, memory: Memory, data: Any = None) -> SuccessorForm:
        active = list_memories(request.workspace).filter(status=MemoryStatus.ACTIVE)
        # A memory of another agent cannot replace this memory.
        active = active.filter(Q(agent=None) | Q(agent=memory.agent_id))
        return SuccessorForm(data, rows=active.exclude(pk=memory.pk))
