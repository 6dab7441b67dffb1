"""REST API for sources, their refresh runs and allowed folders."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.urls import URLPattern

from core.text.lists import format_short_list
from personas.agents.services import create_named_record
from personas.api.authentication import ApiClient
from personas.api.key_limits import Touches, check_key_limits
from personas.api.operations import ApiRequest, Operation
from personas.api.pagination import PAGINATION_PARAMS, page_response, paginate_rows
from personas.api.record_resource import RecordResource
from personas.api.responses import ApiResponse, datetime_json, json_response
from personas.api.schema import (
    ABSOLUTE_PATH_FORMAT,
    RELATIVE_PATH_FORMAT,
    Schema,
    array_schema,
    boolean_schema,
    datetime_schema,
    enum_schema,
    integer_schema,
    line_schema,
    nullable_schema,
    object_schema,
    page_schema,
    slug_schema,
)
from personas.api.views import endpoint
from personas.errors import InvalidInput
from personas.models import Workspace
from personas.records.services import FieldValues, restore_record
from personas.roles import Permission
from personas.tenancy.models import WorkspaceOwned
from skills.api_helpers import TEXT_SCHEMA, get_readable_source_ids, require_own_source, require_write_verb
from skills.discovery.harnesses import HARNESSES
from skills.models import AllowedFolder, Approval, Source, SourceKind
from skills.refresh import api as refresh_api
from skills.refresh.holds import confirm_removal
from skills.refresh.runs import request_refresh
from skills.refresh.source_changes import rescan_source
from skills.sources.models import get_default_approval
from skills.sources.selectors import (
    RUN_PATH_LISTS,
    count_statuses_by_source,
    list_allowed_folders,
    list_lost_readers,
    list_source_holds,
    list_sources,
)
from skills.tasks import enqueue_refresh_run
from skills.uploads.api import build_push_urls

HOLD_SCHEMA = object_schema(
    {"run": integer_schema(1), "missing": integer_schema(1)},
    description="The run whose missing files need confirmation. Null if there is none.",
    title="SourceHold",
)
CONFIRMATION_SCHEMA = object_schema(
    {"run": integer_schema(1, description="The held run whose missing files you have seen.")},
    title="RemovalConfirmation",
)
ALLOWED_FOLDER_SCHEMA = object_schema({"path": TEXT_SCHEMA, "note": TEXT_SCHEMA}, title="AllowedFolder")
NO_SCHEDULE_MESSAGE = "Pushed files are read when they are pushed. Omit this."
SOURCE_PROPERTIES: dict[str, Schema] = {
    "slug": slug_schema(),
    "kind": enum_schema(
        SourceKind.values,
        default=str(SourceKind.FOLDER),
        description="Cannot be changed later.",
        title="SourceKind",
    ),
    "allowed_folder": nullable_schema(
        line_schema(1_000, least=1, description="The path of an allowed folder. Null if files are pushed.")
    ),
    "folder": line_schema(
        1_000, format=RELATIVE_PATH_FORMAT, description="Below the allowed folder. Empty: that folder."
    ),
    "location": line_schema(
        1_000,
        format=ABSOLUTE_PATH_FORMAT,
        description="The root on the machine of the bots. Prompts show paths below it. If empty, they show "
        "relative paths.",
    ),
    "harnesses": array_schema(
        enum_schema(HARNESSES, title="Harness"),
        minItems=1,
        uniqueItems=True,
        default=list(HARNESSES),
        description="Rule sets.",
    ),
    "approval": enum_schema(
        Approval.values,
        description="Whether valid revisions are used immediately or after approval. Default: manual.",
        title="SourceApproval",
    ),
    "refresh_minutes": nullable_schema(
        integer_schema(1, 10_080, description="Minutes between refresh runs. Null: only on request.")
    ),
    "allow_hard_links": boolean_schema(
        default=False,
        description="Whether to read files with several hard links, which may also exist outside the folder.",
    ),
}


# A new pushed source has no folder settings and no schedule; a new folder source needs an allowed folder.
SOURCE_CONDITION: Schema = {
    "if": {"properties": {"kind": {"const": str(SourceKind.PUSHED)}}, "required": ["kind"]},
    "then": {
        "properties": {
            "allowed_folder": {"type": "null"},
            "folder": {"const": ""},
            "refresh_minutes": {"type": "null"},
            "allow_hard_links": {"const": False},
        }
    },
    "else": {"properties": {"allowed_folder": {"type": "string"}}, "required": ["allowed_folder"]},
}


def check_automatic_approval(call: ApiRequest, before: str, after: str) -> None:
    """Raise 403 if files need no approval any more, and the key could not approve them itself."""
    if before == Approval.MANUAL and after == Approval.AUTOMATIC:
        require_write_verb(call)


class SourceResource(RecordResource[Source]):
    """CRUD for sources, with refresh runs and pushed files.

    An API key that is limited to some agents sees only the sources that these agents read, and cannot change
    a source's settings.
    """

    model = Source
    name, singular = "sources", "source"
    has_bulk_actions = False
    api_names = {"source_kind": "kind"}
    search_fields = ("name", "slug", "folder", "allowed_folder__path")
    create_only_fields = ("slug", "kind")
    optional_fields = ("slug",)
    schema_overrides = SOURCE_PROPERTIES
    input_condition = SOURCE_CONDITION
    read_only_fields = {
        "files": refresh_api.COUNTS_SCHEMA | {"description": "Number of files by status."},
        "refreshed_at": nullable_schema(datetime_schema()),
        "last_run": nullable_schema(integer_schema(1)),
        "held": nullable_schema(HOLD_SCHEMA),
    }
    volatile_fields = tuple(read_only_fields)
    agent_path = "agent_contexts__agent__slug"
    read_touches = Touches.AGENT
    write_permission = Permission.MANAGE_SOURCES
    filters = {"kind": enum_schema(SourceKind.values, title="SourceKind")}

    def get_queryset(self, workspace: Workspace | int) -> QuerySet[Source]:
        return list_sources(workspace)

    def list_visible(self, caller: ApiClient) -> QuerySet[Source]:
        check_key_limits(caller, self.read_touches, is_write=False)
        rows: QuerySet[Source] = self.get_queryset(caller.workspace)
        if caller.agents is None:
            return rows
        return rows.filter(pk__in=get_readable_source_ids(caller.workspace, caller.agents))

    def apply_filters(self, rows: QuerySet[Source], call: ApiRequest) -> QuerySet[Source]:
        kind = call.query.get("kind")
        return rows.filter(source_kind=kind) if kind else rows

    # --- values -----------------------------------------------------------------------------------------

    def paginate(self, call: ApiRequest, rows: QuerySet[Source]) -> ApiResponse:
        page = paginate_rows(rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""))
        self.count_files(call.workspace, page.rows)
        return page_response(call, page, [self.to_json(row) for row in page.rows])

    def count_files(self, workspace: Workspace, rows: Iterable[Any]) -> None:
        statuses = count_statuses_by_source(workspace, rows)
        holds = {run.source_id: run for run in list_source_holds(workspace).defer(*RUN_PATH_LISTS)}
        for row in rows:
            row.file_statuses, row.hold = statuses[row.pk], holds.get(row.pk)

    def extra_json(self, record: Any) -> dict[str, Any]:
        if not hasattr(record, "file_statuses"):
            self.count_files(record.workspace, [record])
        return {
            "files": record.file_statuses,
            "refreshed_at": record.refreshed_at and datetime_json(record.refreshed_at),
            "last_run": record.last_run_id,
            "held": {"run": record.hold.pk, "missing": record.hold.missing} if record.hold else None,
        }

    def field_json(self, record: Source, name: str) -> Any:
        if name == "allowed_folder":
            return record.allowed_folder.path if record.allowed_folder else None
        return super().field_json(record, name)

    @property
    def snapshot_links(self) -> Mapping[str, tuple[type[WorkspaceOwned], str]]:
        return {"allowed_folder": (AllowedFolder, "path")}

    def parse_value(self, call: ApiRequest, name: str, value: Any, expected: Schema) -> Any:
        if name != "allowed_folder" or value is None:
            return super().parse_value(call, name, value, expected)
        allowed_folder = list_allowed_folders(call.workspace).filter(path=value).first()
        if allowed_folder is None:
            raise LookupError(value)
        return allowed_folder

    def complete_values(self, record: Source, values: FieldValues) -> FieldValues:
        if record.source_kind == SourceKind.PUSHED:
            check_no_schedule(values)
        check_lost_readers(record, values.get("harnesses", record.harnesses))
        return values

    # --- actions ----------------------------------------------------------------------------------------

    @transaction.atomic
    def create(self, call: ApiRequest, values: FieldValues, message: str) -> Source:
        """Create a source and request its first refresh, as the HTML page for a new source does."""
        if values.get("source_kind") == SourceKind.PUSHED:
            check_no_schedule(values)
            values["refresh_minutes"] = None
        source = create_named_record(Source, call.workspace, values, by=call.actor, message=message)
        check_automatic_approval(call, get_default_approval(), source.approval)
        enqueue_refresh_run(request_refresh(source, cause="created", by=call.actor))
        return source

    def replace(self, call: ApiRequest, key: Any) -> ApiResponse:
        default = get_default_approval()
        call.body = {"approval": str(default), **call.body}
        return super().replace(call, key)

    @transaction.atomic
    def change(self, call: ApiRequest, key: Any) -> ApiResponse:
        before = self.find_record(call, key)
        super().change(call, key)
        return self.rescan_if_changed(call, before)

    @transaction.atomic
    def restore_to_revision(self, call: ApiRequest, key: Any, number: int) -> ApiResponse:
        before = self.find_record(call, key)
        super().restore_to_revision(call, key, number)
        return self.rescan_if_changed(call, before)

    def rescan_if_changed(self, call: ApiRequest, before: Source) -> ApiResponse:
        """Rescan the source if the request changed it, so that the change applies to its files at once."""
        after = self.reload(before)
        check_automatic_approval(call, before.approval, after.approval)
        if after.revision != before.revision and not after.is_archived:
            enqueue_refresh_run(rescan_source(after, cause="edited", by=call.actor))
        return self.record_response(self.reload(before))

    def remove(self, call: ApiRequest, key: Any) -> ApiResponse:
        return super().remove(call, key)

    @transaction.atomic
    def unarchive(self, call: ApiRequest, record: Source) -> Source:
        restored = restore_record(record, by=call.actor)
        enqueue_refresh_run(rescan_source(restored, cause="edited", by=call.actor))
        return restored

    def refresh(self, call: ApiRequest, key: str) -> ApiResponse:
        source = self.find_record(call, key)
        require_own_source(call, source)
        run = request_refresh(source, cause="person", by=call.actor)
        enqueue_refresh_run(run)
        return json_response(
            refresh_api.run_json(run, source), 202, Location=refresh_api.get_run_url(run, source)
        )

    def confirm_removal(self, call: ApiRequest, key: str) -> ApiResponse:
        source = self.find_record(call, key)
        run = confirm_removal(source, call.body["run"], by=call.actor)
        enqueue_refresh_run(run)
        return json_response(
            refresh_api.run_json(run, source), 202, Location=refresh_api.get_run_url(run, source)
        )

    def list_runs(self, call: ApiRequest, key: str) -> ApiResponse:
        return refresh_api.index(call, self.find_record(call, key))

    def read_run(self, call: ApiRequest, key: str, number: int) -> ApiResponse:
        return refresh_api.detail(call, self.find_record(call, key), number)

    def extra_urls(self) -> list[URLPattern]:
        options: dict[str, Any] = {"bots": True, "touches": self.read_touches, "tag": self.name}
        base_path = "sources/<slug:slug>"
        list_operation = Operation(
            self.list_runs,
            "List the refresh runs of a source, newest first",
            operation_id="listSourceRuns",
            answer=page_schema(refresh_api.RUN_SCHEMA),
            query=PAGINATION_PARAMS,
            **options,
        )
        detail_operation = Operation(
            self.read_run,
            "Get a refresh run of a source",
            operation_id="getSourceRun",
            answer=refresh_api.RUN_DETAIL_SCHEMA,
            **options,
        )
        refresh_operation = Operation(
            self.refresh,
            "Refresh a source",
            operation_id="refreshSource",
            permission=Permission.EDIT,
            touches=Touches.AGENT,
            answer=refresh_api.RUN_SCHEMA,
            status=202,
            is_retryable=True,
            tag=self.name,
        )
        confirm_operation = Operation(
            self.confirm_removal,
            "Confirm that the missing files of a held run are removed",
            operation_id="confirmSourceRemoval",
            permission=Permission.EDIT,
            touches=Touches.WORKSPACE,
            body=CONFIRMATION_SCHEMA,
            answer=refresh_api.RUN_SCHEMA,
            status=202,
            is_retryable=True,
            tag=self.name,
        )
        return [
            endpoint(f"{base_path}:refresh", "sources-refresh", post=refresh_operation),
            endpoint(f"{base_path}:confirmRemoval", "sources-confirm-removal", post=confirm_operation),
            endpoint(f"{base_path}/runs", "sources-runs", get=list_operation),
            endpoint(f"{base_path}/runs/<int:run>", "sources-run", get=detail_operation),
            *build_push_urls(self.find_record),
        ]


def check_no_schedule(values: FieldValues) -> None:
    if values.get("refresh_minutes"):
        raise InvalidInput.on("refresh_minutes", NO_SCHEDULE_MESSAGE)


def check_lost_readers(source: Source, harnesses: list[str]) -> None:
    """Raise InvalidInput if `harnesses` leaves out a rule set that an agent uses with this source.

    The files that only this rule set matches would no longer be discovered.
    """
    if lost_readers := list_lost_readers(source, harnesses):
        names = format_short_list([f"{reader.agent} ({reader.harness})" for reader in lost_readers])
        raise InvalidInput.on("harnesses", f"In use by {names}. Change the settings of these agents first.")


def list_folders_view(call: ApiRequest) -> ApiResponse:
    page = paginate_rows(
        list_allowed_folders(call.workspace), limit=call.query["limit"], cursor=call.query.get("cursor", "")
    )
    return page_response(call, page, [{"path": row.path, "note": row.note} for row in page.rows])


urlpatterns = [
    *SourceResource().urls(),
    endpoint(
        "allowed-folders",
        "allowed-folders-list",
        get=Operation(
            list_folders_view,
            "List the folders that sources may use",
            operation_id="listAllowedFolders",
            permission=Permission.MANAGE_SOURCES,
            touches=Touches.WORKSPACE,
            budget="read",
            answer=page_schema(ALLOWED_FOLDER_SCHEMA),
            query=PAGINATION_PARAMS,
            tag="sources",
        ),
    ),
]
