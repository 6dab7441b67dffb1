"""Pages of responsibilities and tasks."""

from typing import Any, Literal

from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from personas.errors import DomainError
from personas.models import Responsibility, Task, TaskStatus
from personas.records.bulk_views import ARCHIVE_ACTIONS
from personas.records.list_views import DATE_FIELDS
from personas.records.services import FieldValues
from personas.records.views import ARCHIVE_STATE_CHOICES, RecordPages, get_query_param, post_only
from personas.roles import Permission
from personas.selectors import list_agents, list_responsibilities, list_tasks
from personas.tenancy.middleware import WorkspaceRequest, require_permission
from personas.ui.review import Reviewed
from personas.work.forms import ResponsibilityForm, TaskForm
from personas.work.services import (
    add_responsibility,
    create_task,
    move_responsibility,
    order_responsibilities,
    tick_step,
)


class ResponsibilityPages(RecordPages[Responsibility]):
    model, form = Responsibility, ResponsibilityForm
    one, many = gettext_lazy("responsibility"), gettext_lazy("Responsibilities")
    name, icon = "responsibilities", "duty"
    templates = "personas/responsibilities"
    lede = gettext_lazy("What agents must always do, in the order used in prompts.")
    key, converter, search_fields = "pk", "int", ("title", "text", "agent__name")
    sorts = {
        "title": ("title",),
        "agent": ("agent__name", "agent_id", "position"),
        "changed": ("updated_at",),
    }
    default_sort, bulk_actions = "agent", ARCHIVE_ACTIONS
    export_fields = ("pk", "agent__slug", "position", "title", "text", *DATE_FIELDS)

    def rows(self, request: WorkspaceRequest) -> QuerySet[Responsibility]:
        return list_responsibilities(request.workspace)

    def get_initial(self, request: WorkspaceRequest) -> dict[str, Any]:
        agents = list_agents(request.workspace).prefetch_related(None)
        return {"agent": agents.filter(slug=get_query_param(request, "agent")).first()}

    def create(self, request: WorkspaceRequest, values: FieldValues) -> Responsibility:
        return add_responsibility(request.workspace, values, by=request.actor)

    def more_urls(self) -> list[URLPattern]:
        return [
            path("order/", post_only(self.order), name="order"),
            path("<int:key>/up/", post_only(self.up), name="up"),
            path("<int:key>/down/", post_only(self.down), name="down"),
        ]

    @require_permission(Permission.EDIT, Reviewed())
    def up(self, request: WorkspaceRequest, key: str) -> HttpResponse:
        return self.move(request, key, "up")

    @require_permission(Permission.EDIT, Reviewed())
    def down(self, request: WorkspaceRequest, key: str) -> HttpResponse:
        return self.move(request, key, "down")

    @require_permission(Permission.EDIT, Reviewed())
    def order(self, request: WorkspaceRequest) -> HttpResponse:
        """Save the order of responsibilities after drag and drop. Answer 204, or 409 with an error text."""
        agents = list_agents(request.workspace).prefetch_related(None)
        agent = get_object_or_404(agents, slug=request.POST.get("agent", "").replace("\x00", ""))
        ids = request.POST.getlist("duty")
        try:
            order = [int(pk) for pk in ids if pk.isascii() and pk.isdecimal() and len(pk) < 19]
            order_responsibilities(agent, order, by=request.actor)
        except DomainError as error:
            return HttpResponse(error.message, status=409, content_type="text/plain; charset=utf-8")
        return HttpResponse(status=204)

    def move(self, request: WorkspaceRequest, key: str, direction: Literal["up", "down"]) -> HttpResponse:
        responsibility = self.find(request, key)
        move_responsibility(responsibility, direction, by=request.actor)
        return redirect("agents:detail", request.workspace.slug, responsibility.agent.slug)


class TaskPages(RecordPages[Task]):
    feeds_prompts = False
    model, form = Task, TaskForm
    one, many = gettext_lazy("task"), gettext_lazy("Tasks")
    name, icon, templates = "tasks", "task", "personas/tasks"
    lede = gettext_lazy("What agents work on now, in ordered steps. A prompt can be limited to one task.")
    key, converter, search_fields = "number", "int", ("title", "description")
    sorts = {
        "task": ("number",),
        "status": ("status", "number"),
        "agent": ("agent__name", "number"),
        "changed": ("updated_at",),
    }
    default_sort, bulk_actions = "-task", ARCHIVE_ACTIONS
    export_fields = ("number", "title", "status", "agent__slug", "description", *DATE_FIELDS)

    def rows(self, request: WorkspaceRequest) -> QuerySet[Task]:
        return list_tasks(request.workspace)

    def filters(self, request: WorkspaceRequest) -> list[dict[str, Any]]:
        statuses = [("", _("Any status")), *TaskStatus.choices]
        return [
            {"name": "status", "label": _("Status"), "options": statuses},
            {"name": "shelf", "label": _("Show"), "options": ARCHIVE_STATE_CHOICES},
        ]

    def filter_rows(self, rows: QuerySet[Task], chosen: dict[str, str]) -> QuerySet[Task]:
        rows = super().filter_rows(rows, chosen)
        return rows.filter(status=chosen["status"]) if chosen["status"] else rows

    def get_initial(self, request: WorkspaceRequest) -> dict[str, Any]:
        agents = list_agents(request.workspace).prefetch_related(None)
        return {"agent": agents.filter(slug=get_query_param(request, "agent")).first()}

    def create(self, request: WorkspaceRequest, values: FieldValues) -> Task:
        return create_task(request.workspace, values, by=request.actor)

    def more_urls(self) -> list[URLPattern]:
        return [path("<int:key>/steps/<int:place>/", post_only(self.tick), name="tick")]

    @require_permission(Permission.EDIT, Reviewed(gettext_lazy("Complete")))
    def tick(self, request: WorkspaceRequest, key: str, place: int) -> HttpResponse:
        is_done = request.POST.get("is_done") == "1"

        def apply_tick(task: Task, _: WorkspaceRequest) -> Task:
            return tick_step(task, place, is_done=is_done, by=request.actor)

        return self.run_action(
            request, key, apply_tick, _("Step completed") if is_done else _("Step reopened")
        )
