"""REST resources of responsibilities and tasks; bots may mark steps done and remove a responsibility."""

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.urls import URLPattern

from personas.agents.api import AgentResource
from personas.api.key_limits import Touches
from personas.api.operations import ApiRequest, Operation
from personas.api.problems import Problem, ProblemError
from personas.api.record_resource import RecordResource
from personas.api.responses import ApiResponse, json_response, no_content_response
from personas.api.schema import (
    array_schema,
    boolean_schema,
    enum_schema,
    integer_schema,
    line_schema,
    object_schema,
    slug_schema,
)
from personas.api.views import endpoint
from personas.models import Agent, Responsibility, Task, TaskStatus, Workspace
from personas.records.services import FieldValues, archive_record
from personas.roles import Permission
from personas.selectors import list_responsibilities, list_tasks
from personas.work.services import add_responsibility, create_task, order_responsibilities, tick_step

REMOVE_REFUSAL = "Bot keys can remove responsibilities only if they are limited to specific agents."
MAX_RESPONSIBILITIES = 1_000
AGENT_FILTER = {"agent": slug_schema(description="Only records of this agent.")}
STEPS_SCHEMA = array_schema(
    object_schema(
        {
            "title": line_schema(300, least=1),
            "is_done": boolean_schema(description="Default: false."),
        },
        required=["title"],
        title="TaskStepInput",
    )
)


class ResponsibilityResource(RecordResource[Responsibility]):
    """Responsibilities of agents."""

    model = Responsibility
    name, singular = "responsibilities", "responsibility"
    lookup_field, lookup_converter = "pk", "int"
    search_fields = ("title", "text")
    create_only_fields = ("agent",)
    derived_fields = ("position",)
    links = {"agent": (Agent, "slug")}
    read_only_fields = {"position": integer_schema()}
    agent_path = "agent__slug"
    read_touches = write_touches = add_touches = Touches.AGENT
    filters = AGENT_FILTER

    def get_queryset(self, workspace: Workspace | int) -> QuerySet[Responsibility]:
        return list_responsibilities(workspace)

    def apply_filters(self, rows: QuerySet[Responsibility], call: ApiRequest) -> QuerySet[Responsibility]:
        agent = call.query.get("agent")
        return rows.filter(agent__slug=agent) if agent else rows

    def extra_json(self, record: Responsibility) -> dict[str, object]:
        return {"position": record.position}

    def create(self, call: ApiRequest, values: FieldValues, message: str) -> Responsibility:
        return add_responsibility(call.workspace, values, by=call.actor, message=message)

    def remove_by_title(self, call: ApiRequest, agent: str) -> ApiResponse:
        """Archive the responsibility with this title. Bots use titles, because prompts contain no ids.

        A bot may do so only with a key that is limited to some agents: responsibilities have no proposals
        that people could review, unlike memories.
        """
        # Checked before the lookup, so that the response does not reveal whether the title exists.
        if call.caller.is_bot and call.caller.agents is None:
            raise ProblemError(Problem(403, "out_of_scope", REMOVE_REFUSAL))
        rows = self.list_visible(call.caller).filter(agent__slug=agent, archived_at=None)
        responsibility = rows.filter(title=call.body["title"].strip()).first()
        if responsibility is None:
            raise Http404
        archive_record(responsibility, by=call.actor)
        return no_content_response()

    def order(self, call: ApiRequest, agent: str) -> ApiResponse:
        """Put the responsibilities of an agent in order, and return them."""
        row = AgentResource().find_record(call, agent)
        order_responsibilities(row, call.body["ids"], by=call.actor)
        rows = self.get_queryset(call.workspace).filter(agent=row, archived_at=None)
        return json_response({"items": [self.to_json(row) for row in rows]})

    def extra_urls(self) -> list[URLPattern]:
        return [
            endpoint(
                "agents/<slug:agent>/responsibilities:order",
                "responsibilities-order",
                post=Operation(
                    self.order,
                    "Order the responsibilities of an agent",
                    operation_id="orderResponsibilities",
                    permission=Permission.EDIT,
                    touches=self.write_touches,
                    body=object_schema(
                        {
                            "ids": array_schema(
                                integer_schema(1),
                                most=MAX_RESPONSIBILITIES,
                                uniqueItems=True,
                                description="The id of each active responsibility, in the new order.",
                            )
                        },
                        title="ResponsibilityOrder",
                    ),
                    body_example={"ids": [7, 3, 5]},
                    answer=object_schema(
                        {"items": {"type": "array", "items": self.response_schema()}},
                        title="ResponsibilityList",
                    ),
                    tag=self.name,
                    is_retryable=True,
                    refusals={404: "not_found", 409: "refused"},
                    note="Prompts list responsibilities in this order. Returns 409 if `ids` are not "
                    "exactly the active responsibilities of the agent.",
                ),
            ),
            endpoint(
                "agents/<slug:agent>/responsibilities:remove",
                "responsibilities-remove",
                post=Operation(
                    self.remove_by_title,
                    "Remove a responsibility from an agent by title",
                    operation_id="removeResponsibility",
                    permission=Permission.EDIT,
                    touches=self.write_touches,
                    bots=True,
                    body=object_schema({"title": line_schema(120, least=1)}, title="ResponsibilityTitle"),
                    status=204,
                    tag=self.name,
                    is_retryable=True,
                    refusals={404: "not_found"},
                ),
            ),
        ]


class TaskResource(RecordResource[Task]):
    """Tasks with steps. The URL contains the task's number in its workspace."""

    model = Task
    name, singular = "tasks", "task"
    lookup_field, lookup_converter = "number", "int"
    search_fields = ("title", "description")
    links = {"agent": (Agent, "slug")}
    schema_overrides = {"steps": STEPS_SCHEMA}
    agent_path = "agent__slug"
    read_touches = write_touches = add_touches = Touches.AGENT
    bots_may_read = bots_may_add = True
    text_fields = ("title", "description", "steps")
    bots_note = " Bot keys get only text that they wrote."
    filters = {
        **AGENT_FILTER,
        "status": enum_schema(
            TaskStatus.values, description="Only tasks with this status.", title="TaskStatus"
        ),
    }

    def get_queryset(self, workspace: Workspace | int) -> QuerySet[Task]:
        return list_tasks(workspace)

    def apply_filters(self, rows: QuerySet[Task], call: ApiRequest) -> QuerySet[Task]:
        if agent := call.query.get("agent"):
            rows = rows.filter(agent__slug=agent)
        if status := call.query.get("status"):
            rows = rows.filter(status=status)
        return rows

    def field_json(self, record: Task, name: str) -> Any:
        if name == "steps":
            return [{"title": step.title, "is_done": step.is_done} for step in record.steps.all()]
        return super().field_json(record, name)

    def create(self, call: ApiRequest, values: FieldValues, message: str) -> Task:
        return create_task(call.workspace, values, by=call.actor, message=message)

    def complete_step(self, call: ApiRequest, key: int, position: int) -> ApiResponse:
        task = self.find_record(call, key)
        if position >= task.steps.count():
            raise Http404
        saved = tick_step(task, position, is_done=call.body["is_done"], by=call.actor)
        return self.record_response(self.reload(saved), call=call)

    def extra_urls(self) -> list[URLPattern]:
        return [
            endpoint(
                "tasks/<int:number>/steps/<int:position>:complete",
                "tasks-tick",
                post=Operation(
                    self.complete_step,
                    "Mark a step of a task as done or open",
                    operation_id="completeTaskStep",
                    permission=Permission.EDIT,
                    touches=self.write_touches,
                    bots=True,
                    body=object_schema({"is_done": boolean_schema()}, title="TaskStepState"),
                    answer=self.response_schema(),
                    tag=self.name,
                    is_retryable=True,
                    refusals={404: "not_found"},
                ),
            )
        ]


urlpatterns = [*ResponsibilityResource().urls(), *TaskResource().urls()]
