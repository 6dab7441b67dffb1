"""REST resource for one kind of record: list, create, read, update, replace, archive, restore, revisions."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from django.db.models import Q, QuerySet
from django.http import Http404
from django.urls import URLPattern

from core.db.before_commit import atomic_with_hooks
from core.text.timestamps import parse_timestamp
from personas.api.etags import NOT_MODIFIED_RESPONSES, check_if_match, get_record_etag
from personas.api.exception_handler import validation_problem
from personas.api.key_limits import check_default_readable, check_restored_links, list_linkable
from personas.api.operations import ApiRequest, Operation
from personas.api.pagination import (
    ANY,
    ARCHIVED_PARAM,
    FIELDS_PARAM,
    PAGINATION_PARAMS,
    page_response,
    paginate_rows,
    select_fields,
)
from personas.api.problems import FieldError, ProblemError, json_pointer
from personas.api.record_bulk import RecordBulk
from personas.api.record_lookup import check_can_search
from personas.api.record_schema import (
    RESOURCES_BY_KIND,
    REVISION_SCHEMA,
    get_default_value,
    remove_unchanged_values,
    revision_json,
    serialize_snapshots,
    with_article,
)
from personas.api.responses import ApiResponse, datetime_json, json_response, no_content_response
from personas.api.schema import (
    Schema,
    datetime_schema,
    line_schema,
    page_schema,
    to_camel_case,
)
from personas.api.views import endpoint
from personas.errors import InvalidInput
from personas.models import Record
from personas.records.services import (
    FieldValues,
    archive_record,
    create_record,
    edit_record,
    get_revision,
    restore_record,
    restore_revision,
)
from personas.roles import Permission
from personas.selectors import list_revisions

R = TypeVar("R", bound=Record)
LIST_PARAMS: dict[str, Schema] = {
    "q": line_schema(200, least=1, description="Text to search for."),
    "archived": ARCHIVED_PARAM,
    "updated_since": datetime_schema(description="Only rows changed at this time or later."),
    "fields": FIELDS_PARAM,
    **PAGINATION_PARAMS,
}
CHANGE_ERROR_CODES = {
    404: "not_found",
    409: "in_use",
    412: "precondition_failed",
    428: "precondition_required",
}


class RecordResource(RecordBulk[R]):
    """Base class with the operations and URLs for a kind of record. Each kind has a subclass."""

    # --- overridden by subclasses -----------------------------------------------------------------------

    def create(self, call: ApiRequest, values: FieldValues, message: str) -> R:
        record: Any = create_record(self.model, call.workspace, values, by=call.actor, message=message)
        return record  # type: ignore[no-any-return]  # of this resource's kind

    def archive(self, call: ApiRequest, record: R) -> None:
        archive_record(record, by=call.actor)

    def unarchive(self, call: ApiRequest, record: R) -> R:
        return restore_record(record, by=call.actor)

    def apply_filters(self, rows: QuerySet[R], call: ApiRequest) -> QuerySet[R]:
        return rows

    def extra_json(self, record: R) -> dict[str, Any]:
        """Return the values of `read_only_fields`."""
        return {}

    def complete_values(self, record: R, values: FieldValues) -> FieldValues:
        """Return `values` plus the stored values of other fields that must be saved together with them."""
        return values

    def extra_urls(self) -> list[URLPattern]:
        return []

    # --- operations -------------------------------------------------------------------------------------

    def index(self, call: ApiRequest) -> ApiResponse:
        return self.paginate(call, self.list_matching(call))

    def list_matching(self, call: ApiRequest) -> QuerySet[R]:
        """Return the records that the key may read and that match the query parameters."""
        rows = self.apply_filters(self.list_visible(call.caller), call)
        if (archived := call.query["archived"]) != ANY:
            rows = rows.filter(archived_at__isnull=archived == "false")
        if since := call.query.get("updated_since"):
            rows = rows.filter(updated_at__gte=since)
        if text := call.query.get("q", "").strip():
            check_can_search(call)
            condition = Q()
            for field in self.search_fields:
                condition |= Q(**{f"{field}__icontains": text})
            rows = rows.filter(condition)
        return rows

    def paginate(self, call: ApiRequest, rows: QuerySet[R]) -> ApiResponse:
        page = paginate_rows(rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""))
        return page_response(call, page, self.records_json(call, page.rows))

    def add(self, call: ApiRequest) -> ApiResponse:
        values, message = self.parse_values(call, is_new=True)
        with self.api_error_names():
            record = self.create(call, values, message)
        return self.record_response(self.reload(record), status=201, call=call, Location=self.get_url(record))

    def read(self, call: ApiRequest, key: Any) -> ApiResponse:
        record = self.find_record(call, key)
        fields = call.query.get("fields", "")
        body = self.records_json(call, [record])[0]
        return json_response(select_fields(body, fields), ETag=get_record_etag(record))

    def change(self, call: ApiRequest, key: Any) -> ApiResponse:
        """Update the fields that the body contains (PATCH).

        `replace` (PUT) calls this method after it has added defaults for the fields that the body lacks.
        """
        with atomic_with_hooks():
            record = self.find_locked(call, key)
            check_if_match(record, call.if_match)
            self.remove_read_only_values(call, record)
            self.remove_kept_links(call, record)
            values, message = self.parse_values(call)
            values = self.complete_values(record, values)
            check_default_readable(call.caller, record, values)
            with self.api_error_names():
                saved = edit_record(record, values, expected=record.revision, by=call.actor, message=message)
        return self.record_response(self.reload(saved))

    def replace(self, call: ApiRequest, key: Any) -> ApiResponse:
        defaults = {
            name: get_default_value(schema)
            for name, schema in self.writable_fields().items()
            if name not in self.create_only_fields and name not in call.body
        }
        call.body = {**defaults, **call.body}
        return self.change(call, key)

    def remove_read_only_values(self, call: ApiRequest, record: R) -> None:
        """Remove the values from the body that cannot be changed. Raise 422 for those that differ."""
        names = self.read_only_names & call.body.keys()
        if names:
            current = self.to_json(record) | {name: call.body.get(name) for name in self.volatile_fields}
            call.body = remove_unchanged_values(call.body, current, names)

    def remove_kept_links(self, call: ApiRequest, record: R) -> None:
        """Remove unchanged links from the body, for limited keys: they may keep what they may not choose."""
        if not call.caller.is_limited:
            return
        names = (self.links.keys() | self.link_lists.keys()) & call.body.keys()
        kept = {name for name in names if call.body[name] == self.field_json(record, name)}
        call.body = {name: value for name, value in call.body.items() if name not in kept}

    def remove(self, call: ApiRequest, key: Any) -> ApiResponse:
        record = self.find_writable(call, key)
        check_if_match(record, call.if_match)
        self.archive(call, record)
        return no_content_response()

    def restore(self, call: ApiRequest, key: Any) -> ApiResponse:
        return self.record_response(self.reload(self.unarchive(call, self.find_writable(call, key))))

    def list_history(self, call: ApiRequest, key: Any) -> ApiResponse:
        rows = list_revisions(self.find_record(call, key))
        page = paginate_rows(
            rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""), newest_first=True
        )
        snapshots = serialize_snapshots(
            self,
            call.workspace,
            [row.data for row in page.rows],
            can_access_agent=call.caller.can_access_agent,
            list_readable=partial(list_linkable, call.caller) if call.caller.is_limited else None,
        )
        rows_json = [revision_json(row, data) for row, data in zip(page.rows, snapshots, strict=True)]
        return page_response(call, page, rows_json)

    def restore_to_revision(self, call: ApiRequest, key: Any, number: int) -> ApiResponse:
        record = self.find_writable(call, key)
        check_if_match(record, call.if_match)
        if not 0 < number < 2**31 or not list_revisions(record).filter(number=number).exists():
            raise Http404
        if call.caller.is_limited:
            values = record.values_from_snapshot(get_revision(record, number).data)
            check_restored_links(call.caller, record, values, self.links, self.link_lists)
        with self.api_error_names():
            saved = restore_revision(record, number, expected=record.revision, by=call.actor)
        return self.record_response(self.reload(saved))

    # --- helpers ----------------------------------------------------------------------------------------

    @contextmanager
    def api_error_names(self) -> Iterator[None]:
        """Report errors of services under the names of the API."""
        try:
            yield
        except InvalidInput as error:
            raise self.rename_error_fields(error) from error

    def reload(self, record: R) -> R:
        """Load the record again, together with the related rows that its JSON contains."""
        if not self.links and not self.read_only_fields:
            return record
        return self.get_queryset(record.workspace).get(pk=record.pk)

    def record_response(
        self, record: R, status: int = 200, *, call: ApiRequest | None = None, **headers: str
    ) -> ApiResponse:
        """Return the record. An operation that bots may use passes its `call`, for the rule about text."""
        body = self.records_json(call, [record])[0] if call else self.to_json(record)
        return json_response(body, status, ETag=get_record_etag(record), **headers)

    def get_url(self, record: R) -> str:
        return f"/api/v1/{self.name}/{getattr(record, self.lookup_field)}"

    def to_json(self, record: R) -> dict[str, Any]:
        data: dict[str, Any] = {"id": record.pk}
        if self.lookup_field in {"slug", "number"}:
            data[self.lookup_field] = getattr(record, self.lookup_field)
        for name in self.writable_fields():
            data[name] = self.field_json(record, name)
        data |= self.extra_json(record)
        return data | {
            "revision": record.revision,
            "is_archived": record.is_archived,
            "created_at": datetime_json(record.created_at),
            "updated_at": datetime_json(record.updated_at),
            "etag": get_record_etag(record),
        }

    def field_json(self, record: R, name: str) -> Any:
        if name in self.link_lists:
            return self.link_list_json(record, name)
        value = getattr(record, self.get_field_name(name))
        if name in self.links and value is not None:
            return getattr(value, self.links[name][1])
        return value

    def link_list_json(self, record: R, name: str) -> list[Any]:
        raise NotImplementedError(name)

    def parse_values(self, call: ApiRequest, *, is_new: bool = False) -> tuple[FieldValues, str]:
        """Convert the body to field values for the services, and return them with the change message.

        Slugs or ids of linked records become records of the workspace, and timestamps become datetimes.
        """
        values, errors = dict(call.body), []
        if call.caller.agents is not None and "agent" in self.links and not values.get("agent", not is_new):
            errors.append(
                FieldError(
                    "This key is limited to specific agents. Name the agents.", json_pointer(["agent"])
                )
            )
        message = values.pop("message", "")
        schemas = self.writable_fields()
        for name, value in values.items():
            try:
                values[name] = self.parse_value(call, name, value, schemas.get(name, {}))
            except LookupError:
                errors.append(FieldError("Record not found.", json_pointer([name])))
        if errors:
            raise ProblemError(validation_problem(errors))
        return {self.get_field_name(name): value for name, value in values.items()}, message

    def parse_value(self, call: ApiRequest, name: str, value: Any, expected: Schema) -> Any:
        if name in self.links:
            return None if value is None else self.find_linked_records(call, *self.links[name], [value])[0]
        if name in self.link_lists:
            return self.find_linked_records(call, *self.link_lists[name], value)
        if expected.get("format") == "date-time" and isinstance(value, str):
            return parse_timestamp(value)
        return value

    @staticmethod
    def find_linked_records(
        call: ApiRequest, model: type[Record], attribute: str, names: list[Any]
    ) -> list[Any]:
        """Return the records whose field `attribute` has the values `names`, in the same order.

        Raise KeyError if a record does not exist, is archived or is not accessible with the client's key.
        """
        rows = list_linkable(call.caller, model)
        rows_by_name = {getattr(row, attribute): row for row in rows.filter(**{f"{attribute}__in": names})}
        return [rows_by_name[name] for name in names]

    def urls(self) -> list[URLPattern]:
        RESOURCES_BY_KIND[self.model.kind] = self
        route, tag, one = self.name, self.name, with_article(self.singular)
        noun, plural = self.schema_title, to_camel_case(self.name)
        row_route = f"{route}/<{self.lookup_converter}:{self.lookup_name}>"
        response_schema = self.response_schema()
        list_params = {**LIST_PARAMS, **self.filters}
        read_options: dict[str, Any] = {
            "permission": Permission.READ,
            "bots": self.bots_may_read,
            "touches": self.read_touches,
            "tag": tag,
        }
        write_options: dict[str, Any] = {
            "permission": self.write_permission,
            "touches": self.write_touches,
            "tag": tag,
        }
        change_options: dict[str, Any] = {
            **write_options,
            "answer": response_schema,
            "is_conditional": True,
            "refusals": CHANGE_ERROR_CODES,
        }
        return [
            endpoint(
                route,
                f"{tag}-list",
                get=Operation(
                    self.index,
                    f"List {route.replace('-', ' ')}",
                    operation_id=f"list{plural}",
                    note=f"Oldest first. Archived records are excluded by default.{self.bots_note}",
                    answer=page_schema(response_schema),
                    query=list_params,
                    **read_options,
                ),
                post=Operation(
                    self.add,
                    f"Create {one}",
                    operation_id=f"create{noun}",
                    note="Omitted fields get default values.",
                    **{**write_options, "bots": self.bots_may_add, "touches": self.add_touches},
                    answer=response_schema,
                    status=201,
                    body=self.body_schema(is_new=True, is_complete=True),
                    is_retryable=True,
                ),
            ),
            *self.extra_urls(),
            *self.bulk_urls(),
            endpoint(
                row_route,
                f"{tag}-one",
                get=Operation(
                    self.read,
                    f"Get {one}",
                    operation_id=f"get{noun}",
                    note=f"Send the ETag of the response as If-Match to change it.{self.bots_note}",
                    answer=response_schema,
                    query={"fields": FIELDS_PARAM},
                    extra_responses=NOT_MODIFIED_RESPONSES,
                    **read_options,
                ),
                patch=Operation(
                    self.change,
                    f"Update {one}",
                    operation_id=f"update{noun}",
                    note="Changes only the fields that you send.",
                    body=self.body_schema(is_new=False, is_complete=False),
                    **change_options,
                ),
                put=Operation(
                    self.replace,
                    f"Replace {one}",
                    operation_id=f"replace{noun}",
                    note="Omitted fields are reset to their defaults.",
                    body=self.body_schema(is_new=False, is_complete=True),
                    read_only_fields=self.read_only_names,
                    **change_options,
                ),
                delete=Operation(
                    self.remove,
                    f"Archive {one}",
                    operation_id=f"archive{noun}",
                    note="Prompts no longer contain it. It can be restored.",
                    **{**change_options, "answer": None, "bots": self.bots_may_remove},
                    status=204,
                ),
            ),
            endpoint(
                f"{row_route}:restore",
                f"{tag}-restore",
                post=Operation(
                    self.restore,
                    f"Restore {one} from the archive",
                    operation_id=f"restore{noun}",
                    note="Prompts can contain it again.",
                    answer=response_schema,
                    refusals={404: "not_found"},
                    is_retryable=True,
                    **write_options,
                ),
            ),
            endpoint(
                f"{row_route}/revisions",
                f"{tag}-revisions",
                get=Operation(
                    self.list_history,
                    f"List the revisions of {one}, newest first",
                    operation_id=f"list{noun}Revisions",
                    note="Each change is a revision with author and content.",
                    answer=page_schema(REVISION_SCHEMA),
                    query=PAGINATION_PARAMS,
                    **{**read_options, "bots": False},
                ),
            ),
            endpoint(
                f"{row_route}/revisions/<int:revision>:restore",
                f"{tag}-restore-revision",
                post=Operation(
                    self.restore_to_revision,
                    f"Restore a revision of {one}",
                    operation_id=f"restore{noun}Revision",
                    note="Creates a new revision with the content of an earlier one.",
                    **change_options,
                ),
            ),
        ]
