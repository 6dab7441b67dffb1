"""REST resource of memories, with the actions approve and supersede."""

from collections.abc import Iterable
from typing import Any

from django.db.models import Q, QuerySet
from django.urls import URLPattern

from personas.api.exception_handler import validation_problem
from personas.api.operations import ApiRequest, Operation
from personas.api.problems import FieldError, ProblemError, json_pointer
from personas.api.record_resource import RecordResource
from personas.api.responses import ApiResponse
from personas.api.schema import enum_schema, integer_schema, nullable_schema, object_schema, slug_schema
from personas.api.views import endpoint
from personas.memories.services import (
    approve_memory,
    create_memory,
    reinstate_memory,
    revoke_memory,
    supersede_memory,
)
from personas.models import Agent, Memory, MemoryState, Workspace
from personas.records.services import FieldValues
from personas.roles import Permission
from personas.selectors import list_memories


class MemoryResource(RecordResource[Memory]):
    """Facts that agents know."""

    model = Memory
    name, singular = "memories", "memory"
    lookup_field, lookup_converter = "pk", "int"
    search_fields = ("text", "source")
    create_only_fields = ("state",)
    derived_fields = ("superseded_by",)
    links = {"agent": (Agent, "slug")}
    schema_overrides = {"state": enum_schema(["active", "proposed"], default="active")}
    read_only_fields = {"author": {"type": "string"}, "superseded_by": nullable_schema(integer_schema(1))}
    agent_path = "agent__slug"
    bots_may_add = True
    filters = {
        "agent": slug_schema(description="Only memories of this agent, and those that all share."),
        "belief": enum_schema(MemoryState.values, description="Only memories in this state."),
    }

    def get_queryset(self, workspace: Workspace) -> QuerySet[Memory]:
        return list_memories(workspace)

    def filter_by_agents(self, rows: QuerySet[Memory], agents: Iterable[str]) -> QuerySet[Memory]:
        return rows.filter(Q(agent__slug__in=list(agents)) | Q(agent=None))

    def apply_filters(self, rows: QuerySet[Memory], call: ApiRequest) -> QuerySet[Memory]:
        if agent := call.query.get("agent"):
            rows = rows.filter(Q(agent__slug=agent) | Q(agent=None))
        if belief := call.query.get("belief"):
            rows = rows.filter(state=belief)
        return rows

    def extra_json(self, record: Memory) -> dict[str, object]:
        return {"author": record.author_label, "superseded_by": record.superseded_by_id}

    def create(self, call: ApiRequest, values: FieldValues, message: str) -> Memory:
        return create_memory(call.workspace, values, by=call.actor, message=message)

    def archive(self, call: ApiRequest, record: Memory) -> None:
        revoke_memory(record, by=call.actor)

    def unarchive(self, call: ApiRequest, record: Memory) -> Memory:
        return reinstate_memory(record, by=call.actor)

    def approve(self, call: ApiRequest, key: int) -> ApiResponse:
        return self.record_response(self.reload(approve_memory(self.find_writable(call, key), by=call.actor)))

    def supersede(self, call: ApiRequest, key: int) -> ApiResponse:
        record = self.find_writable(call, key)
        successor = self.list_visible(call.caller).filter(pk=call.body["by"]).first()
        if successor is None:
            raise ProblemError(
                validation_problem([FieldError("There is no such memory here.", json_pointer(["by"]))])
            )
        return self.record_response(self.reload(supersede_memory(record, successor, by=call.actor)))

    def extra_urls(self) -> list[URLPattern]:
        answer = self.response_schema()
        common: dict[str, Any] = {
            "answer": answer,
            "tag": self.name,
            "is_retryable": True,
            "refusals": {404: "not_found"},
        }
        return [
            endpoint(
                "memories/<int:key>:approve",
                "memories-approve",
                post=Operation(
                    self.approve, "Believe a proposed memory", permission=Permission.APPROVE, **common
                ),
            ),
            endpoint(
                "memories/<int:key>:supersede",
                "memories-supersede",
                post=Operation(
                    self.supersede,
                    "Replace a memory by a newer one",
                    permission=Permission.EDIT,
                    body=object_schema(
                        {"by": integer_schema(1, description="The id of the memory that holds now.")}
                    ),
                    **common,
                ),
            ),
        ]


urlpatterns = MemoryResource().urls()
