"""Memories: bots propose, people believe, newer ones take the place of older."""

from collections.abc import Iterable
from typing import Any

from django.db.models import Q, QuerySet
from django.urls import URLPattern

from personas.api.exception_handler import invalid
from personas.api.operations import Call, Operation
from personas.api.problems import FieldError, ProblemError, pointer_to
from personas.api.record_resource import RecordResource
from personas.api.responses import Answer
from personas.api.schema import choice, nullable, shape, slug, whole
from personas.api.views import endpoint
from personas.memories.services import (
    approve_memory,
    reinstate_memory,
    remember,
    revoke_memory,
    supersede_memory,
)
from personas.models import Agent, Memory, MemoryState, Workspace
from personas.records.services import Values
from personas.roles import Permission
from personas.selectors import memories_of


class Memories(RecordResource[Memory]):
    """Facts that agents know."""

    model = Memory
    name, one = "memories", "memory"
    key, converter = "pk", "int"
    searched = ("text", "source")
    fixed = ("state",)
    derived = ("superseded_by",)
    links = {"agent": (Agent, "slug")}
    more = {"state": choice(["active", "proposed"], default="active")}
    shown = {"author": {"type": "string"}, "superseded_by": nullable(whole(1))}
    agent_path = "agent__slug"
    bots_may_add = True
    filters = {
        "agent": slug(description="Only memories of this agent, and those that all share."),
        "belief": choice(MemoryState.values, description="Only memories in this state."),
    }

    def rows(self, workspace: Workspace) -> QuerySet[Memory]:
        return memories_of(workspace)

    def of_agents(self, rows: QuerySet[Memory], agents: Iterable[str]) -> QuerySet[Memory]:
        return rows.filter(Q(agent__slug__in=list(agents)) | Q(agent=None))

    def narrowed(self, rows: QuerySet[Memory], call: Call) -> QuerySet[Memory]:
        if agent := call.query.get("agent"):
            rows = rows.filter(Q(agent__slug=agent) | Q(agent=None))
        if belief := call.query.get("belief"):
            rows = rows.filter(state=belief)
        return rows

    def also(self, record: Memory) -> dict[str, object]:
        return {"author": record.author_label, "superseded_by": record.superseded_by_id}

    def create(self, call: Call, values: Values, message: str) -> Memory:
        return remember(call.workspace, values, by=call.actor, message=message)

    def shelve(self, call: Call, record: Memory) -> None:
        revoke_memory(record, by=call.actor)

    def bring_back(self, call: Call, record: Memory) -> Memory:
        return reinstate_memory(record, by=call.actor)

    def approve(self, call: Call, key: int) -> Answer:
        return self.given(self.fresh(approve_memory(self.taken(call, key), by=call.actor)))

    def supersede(self, call: Call, key: int) -> Answer:
        record = self.taken(call, key)
        successor = self.visible(call.caller).filter(pk=call.body["by"]).first()
        if successor is None:
            raise ProblemError(invalid([FieldError("There is no such memory here.", pointer_to(["by"]))]))
        return self.given(self.fresh(supersede_memory(record, successor, by=call.actor)))

    def more_urls(self) -> list[URLPattern]:
        told = self.answer()
        common: dict[str, Any] = {
            "answer": told,
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
                    body=shape({"by": whole(1, description="The id of the memory that holds now.")}),
                    **common,
                ),
            ),
        ]


urlpatterns = Memories().urls()
