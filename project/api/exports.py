"""REST operations that export lists as CSV or JSON, with the columns of the pages' exports.

Exports for which the pages ask for the password again need an owner's admin key with the verb `manage`, and
write an audit event.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.urls import URLPattern

from core.db.replica import iterate_replica
from personas.agents.api import AgentResource
from personas.agents.views import AgentPages
from personas.api.key_limits import Touches
from personas.api.operations import ApiRequest, Operation
from personas.api.record_resource import LIST_PARAMS, RecordResource
from personas.api.responses import ApiResponse, datetime_json
from personas.api.schema import (
    Schema,
    any_object_schema,
    array_schema,
    enum_schema,
    line_schema,
    object_schema,
    to_camel_case,
)
from personas.api.views import endpoint
from personas.api_keys.api import list_client_keys
from personas.api_keys.views import KEY_EXPORT_COLUMNS
from personas.audit.api import AUDIT_FILTERS, list_matching_events
from personas.audit.audited_export import audit_export
from personas.audit.views import AUDIT_EXPORT_COLUMNS
from personas.channels.api import ChannelResource
from personas.channels.views import ChannelPages
from personas.identities.api import IdentityResource
from personas.identities.views import IdentityPages
from personas.members.api import MEMBER_FILTERS, list_matching_members
from personas.members.views import MEMBER_EXPORT_COLUMNS
from personas.memories.api import MemoryResource
from personas.memories.views import MemoryPages
from personas.records.views import RecordPages
from personas.roles import Permission
from personas.souls.api import SoulResource
from personas.souls.views import SoulPages
from personas.tools.api import ToolResource
from personas.tools.views import ToolPages
from personas.ui.export import (
    EXPORT_CONTENT_TYPES,
    MAX_EXPORT_ROWS,
    ExportColumn,
    build_export_disposition,
    build_export_stream,
)
from personas.user_profiles.api import UserProfileResource
from personas.user_profiles.views import UserProfilePages
from personas.work.api import ResponsibilityResource, TaskResource
from personas.work.views import ResponsibilityPages, TaskPages
from prompts.evidence.integrity.views import iterate_checkpoint_lines
from prompts.evidence.ledger.api import LEDGER_FILTERS, list_visible_entries, parse_ledger_filter
from prompts.evidence.ledger.views import EXPORT_COLUMNS as LEDGER_EXPORT_COLUMNS
from prompts.publishing.labels.views import LABEL_COLUMNS
from prompts.publishing.releases.selectors import list_label_usage
from skills.library.bulk_views import EXPORT_COLUMNS as SKILL_EXPORT_COLUMNS
from skills.library.bulk_views import iterate_skill_items
from skills.library.list import SkillFilter, list_skill_entries
from skills.sources.api import SourceResource
from skills.sources.views import SourcePages

LIST_ONLY_PARAMS = {"limit", "cursor", "fields"}
JSON_EXPORT_SCHEMA = object_schema(
    {
        "rows": array_schema(any_object_schema(), most=MAX_EXPORT_ROWS),
        "note": {"type": "string", "description": "Why rows are missing. Empty if the export is complete."},
    },
    title="Export",
)
EXPORT_CONTENT: Mapping[str, Any] = {
    "text/csv": {"schema": {"type": "string"}},
    "application/json": {"schema": JSON_EXPORT_SCHEMA},
}
JSON_LINES_TYPE = "application/jsonl"
# Notes in the descriptions of the exports. The introduction of the document has the details.
EXPORT_NOTE = f"At most {MAX_EXPORT_ROWS:,} rows."
SENSITIVE_NOTE = "For keys of owners. The audit log records every export."


@dataclass(frozen=True)
class ListExport:
    """A list that can be exported: its rows for a request, and the columns of the file."""

    # The resource in the API, and the name of the list in file names and audit events.
    resource: str
    name: str
    columns: Sequence[ExportColumn]
    list_rows: Callable[[ApiRequest], Iterable[Any]]
    query: Mapping[str, Schema] = field(default_factory=dict)
    # Whether the page asks for the password again, and the export writes an audit event.
    is_sensitive: bool = False
    tag: str = ""

    def run(self, call: ApiRequest) -> ApiResponse:
        file_format = call.query["format"]
        headers = {"Content-Disposition": build_export_disposition(call.workspace, self.name, file_format)}
        content_type = EXPORT_CONTENT_TYPES[file_format]
        if call.method == "HEAD":
            return ApiResponse(200, headers=headers, content_type=content_type)
        rows = self.list_rows(call)
        if self.is_sensitive:
            audit_export(call.workspace, self.name, file_format, list_filter_values(call), by=call.actor)
        stream = build_export_stream(file_format, self.columns, rows)
        return ApiResponse(200, headers=headers, content_type=content_type, stream=stream)

    def url(self) -> URLPattern:
        permission = Permission.MANAGE_MEMBERS if self.is_sensitive else Permission.READ
        return endpoint(
            f"{self.resource}:export",
            f"{self.resource}-export",
            get=Operation(
                self.run,
                f"Export {self.resource.replace('-', ' ')} as a file",
                operation_id=f"export{to_camel_case(self.resource)}",
                permission=permission,
                budget="write",
                touches=Touches.WORKSPACE,
                query={
                    "format": enum_schema(
                        EXPORT_CONTENT_TYPES,
                        default="csv",
                        description="The file format.",
                        title="ExportFormat",
                    ),
                    **self.query,
                },
                extra_content=EXPORT_CONTENT,
                note=f"{EXPORT_NOTE} {SENSITIVE_NOTE}" if self.is_sensitive else EXPORT_NOTE,
                tag=self.tag or self.resource,
            ),
        )


def list_filter_values(call: ApiRequest) -> dict[str, str]:
    """Return the filters of a request for the audit event."""
    return {
        name: datetime_json(value) if hasattr(value, "isoformat") else str(value)
        for name, value in call.query.items()
        if name != "format"
    }


def build_record_export(resource: RecordResource[Any], pages: RecordPages[Any]) -> ListExport:
    query = {**LIST_PARAMS, **resource.filters}
    return ListExport(
        resource.name,
        resource.name,
        pages.get_export_columns(),
        resource.list_matching,
        {name: schema for name, schema in query.items() if name not in LIST_ONLY_PARAMS},
    )


def list_skill_rows(call: ApiRequest) -> Iterator[Any]:
    all_entries = list_skill_entries(call.workspace, SkillFilter(call.query.get("q", "").strip()))
    return iterate_skill_items(call.workspace, all_entries, [one for one in all_entries if one.is_match])


def export_checkpoints(call: ApiRequest) -> ApiResponse:
    headers = {"Content-Disposition": f'attachment; filename="checkpoints-{call.workspace.slug}.jsonl"'}
    stream = None if call.method == "HEAD" else iterate_checkpoint_lines(call.workspace)
    return ApiResponse(200, headers=headers, content_type=JSON_LINES_TYPE, stream=stream)


RECORD_EXPORTS: tuple[tuple[RecordResource[Any], RecordPages[Any]], ...] = (
    (AgentResource(), AgentPages()),
    (IdentityResource(), IdentityPages()),
    (SoulResource(), SoulPages()),
    (UserProfileResource(), UserProfilePages()),
    (MemoryResource(), MemoryPages()),
    (ResponsibilityResource(), ResponsibilityPages()),
    (TaskResource(), TaskPages()),
    (ToolResource(), ToolPages()),
    (ChannelResource(), ChannelPages()),
    (SourceResource(), SourcePages()),
)
LIST_EXPORTS = (
    *(build_record_export(resource, pages) for resource, pages in RECORD_EXPORTS),
    ListExport(
        "skills",
        "skills",
        SKILL_EXPORT_COLUMNS,
        list_skill_rows,
        {"q": line_schema(200, least=1, description="Text to search for.")},
    ),
    ListExport("labels", "labels", LABEL_COLUMNS, lambda call: list_label_usage(call.workspace)),
    ListExport(
        "audit",
        "audit-log",
        AUDIT_EXPORT_COLUMNS,
        lambda call: iterate_replica(list_matching_events(call).defer("before", "after")),
        AUDIT_FILTERS,
        is_sensitive=True,
    ),
    ListExport(
        "ledger",
        "ledger",
        LEDGER_EXPORT_COLUMNS,
        lambda call: iterate_replica(list_visible_entries(call, parse_ledger_filter(call))),
        LEDGER_FILTERS,
        is_sensitive=True,
    ),
    ListExport("keys", "keys", KEY_EXPORT_COLUMNS, list_client_keys, is_sensitive=True),
    ListExport(
        "members", "members", MEMBER_EXPORT_COLUMNS, list_matching_members, MEMBER_FILTERS, is_sensitive=True
    ),
)
urlpatterns: list[URLPattern] = [
    *(one.url() for one in LIST_EXPORTS),
    endpoint(
        "checkpoints:export",
        "checkpoints-export",
        get=Operation(
            export_checkpoints,
            "Export all checkpoints as JSON lines",
            operation_id="exportCheckpoints",
            budget="write",
            touches=Touches.WORKSPACE,
            extra_content={JSON_LINES_TYPE: {"schema": {"type": "string"}}},
            note=(
                "In the format of the checkpoint files that the server writes. Keep a copy in another place."
            ),
            tag="integrity",
        ),
    ),
]
