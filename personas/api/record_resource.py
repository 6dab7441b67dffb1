"""The operations every kind of record has: list, add, read, change, replace, shelve, bring back, history."""

from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from django.db.models import Q, QuerySet
from django.http import Http404
from django.urls import URLPattern

from personas.api.authentication import ApiClient
from personas.api.etags import check_if_match, get_record_etag
from personas.api.exception_handler import validation_problem
from personas.api.operations import ApiRequest, Operation
from personas.api.pagination import (
    FIELDS_PARAM,
    PAGINATION_PARAMS,
    page_response,
    paginate_rows,
    select_fields,
)
from personas.api.problems import FieldError, Problem, ProblemError, json_pointer
from personas.api.record_schema import RecordSchema, get_default_value
from personas.api.responses import ApiResponse, datetime_json, json_response, no_content_response
from personas.api.schema import (
    Schema,
    any_object_schema,
    datetime_schema,
    enum_schema,
    integer_schema,
    line_schema,
    object_schema,
    page_schema,
)
from personas.api.validation import parse_utc_datetime
from personas.api.views import endpoint
from personas.models import Record, Revision, Workspace
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
LIVE, ARCHIVED, ALL = "live", "archived", "all"
LIST_PARAMS: dict[str, Schema] = {
    "q": line_schema(200, least=1, description="Words to look for."),
    "state": enum_schema([LIVE, ARCHIVED, ALL], default=LIVE, description="In use, archived, or both."),
    "updated_since": datetime_schema(description="Only rows changed at this moment or later."),
    "fields": FIELDS_PARAM,
    **PAGINATION_PARAMS,
}
REVISION_SCHEMA = object_schema(
    {
        "number": integer_schema(1),
        "author": {"type": "string"},
        "message": {"type": "string"},
        "at": datetime_schema(),
        "data": any_object_schema(description="The content of that revision; links are ids."),
    }
)
CHANGE_ERROR_CODES = {
    404: "not_found",
    409: "in_use",
    412: "precondition_failed",
    428: "precondition_required",
}


class RecordResource(RecordSchema, Generic[R]):
    """A family of addresses for one kind; a theme says what is different about it."""

    # --- what a theme may say otherwise -----------------------------------------------------------------

    def rows(self, workspace: Workspace) -> QuerySet[R]:
        raise NotImplementedError

    def create(self, call: ApiRequest, values: FieldValues, message: str) -> R:
        made: Any = create_record(self.model, call.workspace, values, by=call.actor, message=message)
        return made  # type: ignore[no-any-return]  # of this resource's kind

    def shelve(self, call: ApiRequest, record: R) -> None:
        archive_record(record, by=call.actor)

    def bring_back(self, call: ApiRequest, record: R) -> R:
        return restore_record(record, by=call.actor)

    def narrowed(self, rows: QuerySet[R], call: ApiRequest) -> QuerySet[R]:
        return rows

    def also(self, record: R) -> dict[str, Any]:
        """The values of `shown`."""
        return {}

    def completed(self, record: R, values: FieldValues) -> FieldValues:
        """What a change of some fields means for others."""
        return values

    def more_urls(self) -> list[URLPattern]:
        return []

    # --- operations -------------------------------------------------------------------------------------

    def index(self, call: ApiRequest) -> ApiResponse:
        rows = self.narrowed(self.visible(call.caller), call)
        state = call.query["state"]
        rows = rows if state == ALL else rows.filter(archived_at__isnull=state == LIVE)
        if since := call.query.get("updated_since"):
            rows = rows.filter(updated_at__gte=since)
        if words := call.query.get("q", "").strip():
            found = Q()
            for field in self.searched:
                found |= Q(**{f"{field}__icontains": words})
            rows = rows.filter(found)
        return self.paged(call, rows)

    def paged(self, call: ApiRequest, rows: QuerySet[R]) -> ApiResponse:
        page = paginate_rows(rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""))
        return page_response(call, page, [self.told(row) for row in page.rows])

    def add(self, call: ApiRequest) -> ApiResponse:
        if call.caller.agents is not None and "agent" not in self.links:
            # What all agents share is not for a key of some.
            raise out_of_scope_error()
        values, message = self.values(call, is_new=True)
        record = self.create(call, values, message)
        return self.given(self.fresh(record), status=201, Location=self.address(record))

    def read(self, call: ApiRequest, key: Any) -> ApiResponse:
        record = self.find(call, key)
        wanted = call.query.get("fields", "")
        return json_response(select_fields(self.told(record), wanted), ETag=get_record_etag(record))

    def change(self, call: ApiRequest, key: Any) -> ApiResponse:
        """PATCH changes what is named; PUT sets what is not named back to nothing."""
        record = self.taken(call, key)
        check_if_match(record, call.if_match)
        values, message = self.values(call)
        values = self.completed(record, values)
        saved = edit_record(record, values, expected=record.revision, by=call.actor, message=message)
        return self.given(self.fresh(saved))

    def replace(self, call: ApiRequest, key: Any) -> ApiResponse:
        blank = {
            name: get_default_value(said)
            for name, said in self.written().items()
            if name not in self.fixed and name not in call.body
        }
        call.body = {**blank, **call.body}
        return self.change(call, key)

    def remove(self, call: ApiRequest, key: Any) -> ApiResponse:
        record = self.taken(call, key)
        check_if_match(record, call.if_match)
        self.shelve(call, record)
        return no_content_response()

    def restore(self, call: ApiRequest, key: Any) -> ApiResponse:
        return self.given(self.fresh(self.bring_back(call, self.taken(call, key))))

    def history(self, call: ApiRequest, key: Any) -> ApiResponse:
        rows = list_revisions(self.find(call, key))
        page = paginate_rows(
            rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""), newest_first=True
        )
        return page_response(call, page, [revision_json(row) for row in page.rows])

    def go_back(self, call: ApiRequest, key: Any, number: int) -> ApiResponse:
        record = self.taken(call, key)
        check_if_match(record, call.if_match)
        if not 0 < number < 2**31 or not list_revisions(record).filter(number=number).exists():
            raise Http404
        self.refuse_leaving(call, record, number)
        saved = restore_revision(record, number, expected=record.revision, by=call.actor)
        return self.given(self.fresh(saved))

    def refuse_leaving(self, call: ApiRequest, record: R, number: int) -> None:
        """A key of some agents cannot make a record another's again."""
        if call.caller.agents is None:
            return
        then = record.values_from_snapshot(get_revision(record, number).data)
        links = [name for name, (model, _) in self.links.items() if model.kind == "agent" and name in then]
        if any(then[name] != getattr(record, name) for name in links):
            raise out_of_scope_error()

    # --- plumbing ---------------------------------------------------------------------------------------

    def visible(self, caller: ApiClient) -> QuerySet[R]:
        """The rows this key may know of."""
        rows = self.rows(caller.workspace)
        if caller.agents is None:
            return rows
        if not self.agent_path:
            raise out_of_scope_error()
        return self.of_agents(rows, caller.agents)

    def of_agents(self, rows: QuerySet[R], agents: Iterable[str]) -> QuerySet[R]:
        return rows.filter(**{f"{self.agent_path}__in": list(agents)})

    def find(self, call: ApiRequest, key: Any) -> R:
        if isinstance(key, int) and not 0 < key < 2**63:
            raise Http404
        if isinstance(key, int) and self.key == "number" and key >= 2**31:
            raise Http404
        found = self.visible(call.caller).filter(**{self.key: key}).first()
        if found is None:
            raise Http404
        if found.workspace_id == call.caller.workspace.pk:
            found.workspace = call.caller.workspace
        return found

    def taken(self, call: ApiRequest, key: Any) -> R:
        """The row to be changed; what all agents share is not for a key of some, though it may read it."""
        record = self.find(call, key)
        if (
            call.caller.agents is not None
            and "agent" in self.links
            and getattr(record, "agent_id", 0) is None
        ):
            raise out_of_scope_error()
        return record

    def fresh(self, record: R) -> R:
        """Read again, with what a list of them shows."""
        return self.rows(record.workspace).get(pk=record.pk)

    def given(self, record: R, status: int = 200, **headers: str) -> ApiResponse:
        return json_response(self.told(record), status, ETag=get_record_etag(record), **headers)

    def address(self, record: R) -> str:
        return f"/api/v1/{self.name}/{getattr(record, self.key)}"

    def told(self, record: R) -> dict[str, Any]:
        said: dict[str, Any] = {"id": record.pk}
        if self.key in {"slug", "number"}:
            said[self.key] = getattr(record, self.key)
        for name in self.written():
            said[name] = self.value_told(record, name)
        said |= self.also(record)
        return said | {
            "revision": record.revision,
            "is_archived": record.is_archived,
            "created_at": datetime_json(record.created_at),
            "updated_at": datetime_json(record.updated_at),
            "etag": get_record_etag(record),
        }

    def value_told(self, record: R, name: str) -> Any:
        if name in self.lists:
            return self.list_told(record, name)
        value = getattr(record, name)
        if name in self.links and value is not None:
            return getattr(value, self.links[name][1])
        return value

    def list_told(self, record: R, name: str) -> list[Any]:
        raise NotImplementedError(name)

    def values(self, call: ApiRequest, *, is_new: bool = False) -> tuple[FieldValues, str]:
        """The body as services take it: links found in the workspace, moments read."""
        values, wrong = dict(call.body), []
        if call.caller.agents is not None and "agent" in self.links and not values.get("agent", not is_new):
            wrong.append(
                FieldError("This key is limited to some agents: say which.", json_pointer(["agent"]))
            )
        message = values.pop("message", "")
        shapes = self.written()
        for name, said in values.items():
            try:
                values[name] = self.value_read(call, name, said, shapes.get(name, {}))
            except LookupError:
                wrong.append(FieldError("There is no such record here.", json_pointer([name])))
        if wrong:
            raise ProblemError(validation_problem(wrong))
        return values, message

    def value_read(self, call: ApiRequest, name: str, said: Any, expected: Schema) -> Any:
        if name in self.links:
            return None if said is None else self.linked(call, *self.links[name], [said])[0]
        if name in self.lists:
            return self.linked(call, *self.lists[name], said)
        if expected.get("format") == "date-time" and isinstance(said, str):
            return parse_utc_datetime(said)
        return said

    @staticmethod
    def linked(call: ApiRequest, model: type[Record], attribute: str, named: list[Any]) -> list[Any]:
        """The rows by that name, in the order they were named."""
        rows: QuerySet[Any] = model.objects.in_workspace(call.workspace).filter(archived_at=None)
        if model.kind == "agent" and call.caller.agents is not None:
            rows = rows.filter(slug__in=call.caller.agents)
        found = {getattr(row, attribute): row for row in rows.filter(**{f"{attribute}__in": named})}
        return [found[name] for name in named]

    def urls(self) -> list[URLPattern]:
        at, one, tag = self.name, self.one, self.name
        row = f"{at}/<{self.converter}:key>"
        told = self.answer()
        pages = {**LIST_PARAMS, **self.filters}
        reading: dict[str, Any] = {"permission": Permission.READ, "bots": True, "tag": tag}
        writing: dict[str, Any] = {"permission": self.write, "tag": tag}
        changing: dict[str, Any] = {
            **writing,
            "answer": told,
            "is_conditional": True,
            "refusals": CHANGE_ERROR_CODES,
        }
        return [
            endpoint(
                at,
                f"{tag}-list",
                get=Operation(self.index, f"List {at}", answer=page_schema(told), query=pages, **reading),
                post=Operation(
                    self.add,
                    f"Add a {one}",
                    **{**writing, "bots": self.bots_may_add},
                    answer=told,
                    status=201,
                    body=self.body(is_new=True, is_whole=True),
                    is_retryable=True,
                ),
            ),
            *self.more_urls(),
            endpoint(
                row,
                f"{tag}-one",
                get=Operation(
                    self.read, f"Read a {one}", answer=told, query={"fields": FIELDS_PARAM}, **reading
                ),
                patch=Operation(
                    self.change, f"Change a {one}", body=self.body(is_new=False, is_whole=False), **changing
                ),
                put=Operation(
                    self.replace, f"Replace a {one}", body=self.body(is_new=False, is_whole=True), **changing
                ),
                delete=Operation(
                    self.remove,
                    f"Take a {one} out of use",
                    **{**changing, "answer": None, "bots": self.bots_may_remove},
                    status=204,
                ),
            ),
            endpoint(
                f"{row}:restore",
                f"{tag}-restore",
                post=Operation(
                    self.restore,
                    f"Bring a {one} back into use",
                    answer=told,
                    refusals={404: "not_found"},
                    is_retryable=True,
                    **writing,
                ),
            ),
            endpoint(
                f"{row}/revisions",
                f"{tag}-revisions",
                get=Operation(
                    self.history,
                    f"The history of a {one}",
                    answer=page_schema(REVISION_SCHEMA),
                    query=PAGINATION_PARAMS,
                    **reading,
                ),
            ),
            endpoint(
                f"{row}/revisions/<int:number>:restore",
                f"{tag}-go-back",
                post=Operation(self.go_back, f"Make an old revision of a {one} current", **changing),
            ),
        ]


def out_of_scope_error() -> ProblemError:
    return ProblemError(Problem(403, "out_of_scope", "This key is limited to some agents."))


def revision_json(row: Revision) -> dict[str, Any]:
    return {
        "number": row.number,
        "author": row.author_label,
        "message": row.message,
        "at": datetime_json(row.at),
        "data": row.data,
    }
