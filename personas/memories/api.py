"""REST resource of memories, with the actions approve, reject and supersede."""

from collections.abc import Iterable
from typing import Any

from django.db.models import Q, QuerySet
from django.urls import URLPattern

from personas.api.authentication import ApiClient
from personas.api.exception_handler import validation_problem
from personas.api.key_limits import Touches, is_proposing
from personas.api.operations import ApiRequest, Operation
from personas.api.problems import FieldError, ProblemError, json_pointer
from personas.api.record_resource import RecordResource
from personas.api.responses import ApiResponse, json_response
from personas.api.schema import (
    NONBLANK_PROSE_PATTERN,
    Schema,
    array_schema,
    datetime_schema,
    enum_schema,
    integer_schema,
    line_schema,
    nullable_schema,
    object_schema,
    prose_schema,
    slug_schema,
)
from personas.api.views import endpoint
from personas.api_keys.selectors import list_bot_labels
from personas.errors import InvalidInput
from personas.memories.memory_file import (
    DEFAULT_SOURCE,
    LIST_KEY,
    MAX_ENTRIES,
    TEXT_KEYS,
    ImportedMemory,
    import_memories,
)
from personas.memories.services import (
    approve_memory,
    create_memory,
    reinstate_memory,
    reject_memory,
    revoke_memory,
    supersede_memory,
)
from personas.models import Agent, Memory, MemoryStatus, Workspace
from personas.records.services import FieldValues
from personas.roles import Permission
from personas.selectors import list_memories

MAX_TEXT = Memory._meta.get_field("text").max_length or 0
ENTRY_SCHEMA: Schema = {
    "type": ["string", "object"],
    "minLength": 1,
    "maxLength": MAX_TEXT,
    "pattern": NONBLANK_PROSE_PATTERN,
    "properties": {
        **{key: prose_schema(MAX_TEXT, least=1) for key in TEXT_KEYS},
        "source": nullable_schema(line_schema(300, description=f"Default: “{DEFAULT_SOURCE}”.")),
        "valid_from": nullable_schema(datetime_schema()),
        "valid_until": nullable_schema(datetime_schema()),
    },
    "if": {"type": "object"},
    "then": {"anyOf": [{"required": [key]} for key in TEXT_KEYS]},
    "title": "MemoryFileEntry",
    "description": f"A text, or an object with its text under one of: {', '.join(TEXT_KEYS)}.",
}
# The body is the content of the file: a list, or an object with the list under `memories`. `items` applies to
# a list only, and `properties` and `required` to an object only.
IMPORT_SCHEMA: Schema = {
    "type": ["array", "object"],
    "items": ENTRY_SCHEMA,
    "maxItems": MAX_ENTRIES,
    "properties": {LIST_KEY: array_schema(ENTRY_SCHEMA, most=MAX_ENTRIES)},
    "required": [LIST_KEY],
    "title": "MemoryFile",
}
IMPORTED_SCHEMA = object_schema(
    {
        "index": integer_schema(description="Position of the entry in the file, from 0."),
        "id": integer_schema(1, description="The memory with this text."),
        "text": {"type": "string"},
        "status": enum_schema(MemoryStatus.values, title="MemoryStatus"),
    },
    title="ImportedMemory",
)
IMPORT_RESULT_SCHEMA = object_schema(
    {
        "created_count": integer_schema(),
        "skipped_count": integer_schema(),
        "created": {"type": "array", "items": IMPORTED_SCHEMA},
        "skipped": {"type": "array", "items": IMPORTED_SCHEMA},
        "ignored_keys": {"type": "array", "items": {"type": "string"}},
    },
    title="MemoryImportResult",
)


class MemoryResource(RecordResource[Memory]):
    """Facts that agents know."""

    model = Memory
    name, singular = "memories", "memory"
    has_compiled_lookup = True
    lookup_field, lookup_converter = "pk", "int"
    search_fields = ("text", "source")
    create_only_fields = ("status",)
    derived_fields = ("superseded_by",)
    links = {"agent": (Agent, "slug")}
    schema_overrides = {
        "status": enum_schema(
            ["active", "proposed"],
            title="NewMemoryStatus",
            description="Default: `proposed` for bots that cannot activate memories, otherwise `active`.",
        )
    }
    read_only_fields = {"author": {"type": "string"}, "superseded_by": nullable_schema(integer_schema(1))}
    agent_path = "agent__slug"
    read_touches = write_touches = Touches.AGENT
    add_touches = Touches.PROPOSAL
    bots_may_read = bots_may_add = True
    text_fields = ("text", "source")
    bots_note = " Bot keys get only memories that they wrote."
    filters = {
        "agent": slug_schema(description="Only memories of this agent and shared memories."),
        "status": enum_schema(
            MemoryStatus.values, description="Only memories with this status.", title="MemoryStatus"
        ),
    }

    def get_queryset(self, workspace: Workspace | int) -> QuerySet[Memory]:
        return list_memories(workspace)

    def filter_by_agents(self, rows: QuerySet[Memory], agents: Iterable[str]) -> QuerySet[Memory]:
        return rows.filter(Q(agent__slug__in=list(agents)) | Q(agent=None))

    def filter_for_bot(self, rows: QuerySet[Memory], caller: ApiClient) -> QuerySet[Memory]:
        """Return the memories that the bot wrote. Active memories of others are in its prompt."""
        return rows.filter(author_label__in=list_bot_labels(caller.key))

    def apply_filters(self, rows: QuerySet[Memory], call: ApiRequest) -> QuerySet[Memory]:
        if agent := call.query.get("agent"):
            rows = rows.filter(Q(agent__slug=agent) | Q(agent=None))
        if status := call.query.get("status"):
            rows = rows.filter(status=status)
        return rows

    def extra_json(self, record: Memory) -> dict[str, object]:
        return {"author": record.author_label, "superseded_by": record.superseded_by_id}

    def create(self, call: ApiRequest, values: FieldValues, message: str) -> Memory:
        if values.get("status") == MemoryStatus.ACTIVE and is_proposing(call.caller):
            detail = (
                "This key can only propose memories. To create active memories, it needs the verb `activate`."
            )
            raise InvalidInput.on("status", detail)
        return create_memory(call.workspace, values, by=call.actor, message=message)

    def archive(self, call: ApiRequest, record: Memory) -> None:
        revoke_memory(record, by=call.actor)

    def unarchive(self, call: ApiRequest, record: Memory) -> Memory:
        return reinstate_memory(record, by=call.actor)

    def approve(self, call: ApiRequest, key: int) -> ApiResponse:
        return self.record_response(self.reload(approve_memory(self.find_writable(call, key), by=call.actor)))

    def reject(self, call: ApiRequest, key: int) -> ApiResponse:
        return self.record_response(self.reload(reject_memory(self.find_writable(call, key), by=call.actor)))

    def approve_many(self, call: ApiRequest) -> ApiResponse:
        return self.run_bulk_action(call, lambda call, memory: approve_memory(memory, by=call.actor))

    def reject_many(self, call: ApiRequest) -> ApiResponse:
        return self.run_bulk_action(call, lambda call, memory: reject_memory(memory, by=call.actor))

    def supersede(self, call: ApiRequest, key: int) -> ApiResponse:
        record = self.find_writable(call, key)
        successor = self.list_visible(call.caller).filter(pk=call.body["superseded_by"]).first()
        if successor is None:
            raise ProblemError(
                validation_problem([FieldError("Memory not found.", json_pointer(["superseded_by"]))])
            )
        return self.record_response(self.reload(supersede_memory(record, successor, by=call.actor)))

    def import_file(self, call: ApiRequest) -> ApiResponse:
        result = import_memories(call.workspace, call.body, by=call.actor)
        return json_response(
            {
                "created_count": len(result.created),
                "skipped_count": len(result.skipped),
                "created": [imported_memory_json(entry) for entry in result.created],
                "skipped": [imported_memory_json(entry) for entry in result.skipped],
                "ignored_keys": result.ignored_keys,
            }
        )

    def extra_urls(self) -> list[URLPattern]:
        answer = self.response_schema()
        common: dict[str, Any] = {
            "answer": answer,
            "tag": self.name,
            "is_retryable": True,
            "refusals": {404: "not_found"},
            "touches": self.write_touches,
        }
        return [
            endpoint(
                "memories:import",
                "memories-import",
                post=Operation(
                    self.import_file,
                    "Import shared memories from memories.json",
                    operation_id="importMemories",
                    permission=Permission.EDIT,
                    touches=Touches.WORKSPACE,
                    body=IMPORT_SCHEMA,
                    body_example=[
                        "The user is called Ada.",
                        {"content": "Prefers tea.", "source": "onboarding"},
                    ],
                    answer=IMPORT_RESULT_SCHEMA,
                    is_retryable=True,
                    note=(
                        "Imports all entries or none. Entries with the same text as a shared memory "
                        "are skipped."
                    ),
                    tag=self.name,
                ),
            ),
            endpoint(
                "memories/<int:id>:approve",
                "memories-approve",
                post=Operation(
                    self.approve,
                    "Approve a proposed memory",
                    operation_id="approveMemory",
                    permission=Permission.APPROVE,
                    **common,
                ),
            ),
            endpoint(
                "memories/<int:id>:reject",
                "memories-reject",
                post=Operation(
                    self.reject,
                    "Reject a proposed memory",
                    operation_id="rejectMemory",
                    permission=Permission.APPROVE,
                    note="Revokes the memory. Unlike `DELETE`, this requires only the verb `approve`.",
                    **common,
                ),
            ),
            self.bulk_url("approve", self.approve_many, Permission.APPROVE),
            self.bulk_url("reject", self.reject_many, Permission.APPROVE),
            endpoint(
                "memories/<int:id>:supersede",
                "memories-supersede",
                post=Operation(
                    self.supersede,
                    "Replace a memory with a newer one",
                    operation_id="supersedeMemory",
                    permission=Permission.EDIT,
                    body=object_schema(
                        {
                            "superseded_by": integer_schema(
                                1, description="The id of the memory that replaces it."
                            )
                        },
                        title="MemorySuccessor",
                    ),
                    **common,
                ),
            ),
        ]


def imported_memory_json(entry: ImportedMemory) -> dict[str, Any]:
    memory = entry.memory
    return {"index": entry.index, "id": memory.pk, "text": memory.text, "status": memory.status}


urlpatterns = MemoryResource().urls()
