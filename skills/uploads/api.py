"""REST API for pushed files: list, push one or many, and delete."""

from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.urls import URLPattern

from personas.api.etags import check_put_precondition
from personas.api.exception_handler import validation_problem
from personas.api.key_limits import Touches
from personas.api.operations import ApiRequest, Operation
from personas.api.pagination import PAGINATION_PARAMS, page_response, paginate_rows
from personas.api.problems import FieldError, ProblemError
from personas.api.responses import ApiResponse, datetime_json, json_response
from personas.api.schema import (
    RELATIVE_PATH_FORMAT,
    Schema,
    array_schema,
    boolean_schema,
    datetime_schema,
    integer_schema,
    object_schema,
    page_schema,
)
from personas.api.views import endpoint
from personas.errors import InvalidInput
from personas.roles import Permission
from skills.api_helpers import TEXT_SCHEMA, require_own_source
from skills.archives import FileBundle, bundle_files
from skills.archives.paths import MAX_PATH_LENGTH, check_path
from skills.discovery import Refusal
from skills.discovery.filesystem import FileRefused
from skills.discovery.harnesses import DiscoveryCaps
from skills.models import PushedFile, RefreshRun, Source
from skills.refresh.api import RUN_SCHEMA, get_run_url, run_json
from skills.tasks import enqueue_refresh_run
from skills.uploads.outcome_api import PUSH_OUTCOME_SCHEMA, push_outcome_json, push_refusals_json
from skills.uploads.services import InvalidBundle, Pusher, push_bundle, push_file, remove_pushed_file

SourceLookup = Callable[[ApiRequest, str], Source]
DEFAULT_CAPS = DiscoveryCaps()
BASE64_REGEX = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
# A file must have exactly one of these properties. In the schemas below, minProperties and maxProperties
# enforce this.
CONTENT_PROPERTIES: dict[str, Schema] = {
    "text": {"type": "string", "maxLength": DEFAULT_CAPS.file_bytes * 4},
    "base64": {"type": "string", "maxLength": DEFAULT_CAPS.file_bytes * 4, "pattern": BASE64_REGEX},
}
PATH_SCHEMA: Schema = {
    "type": "string",
    "format": RELATIVE_PATH_FORMAT,
    "minLength": 1,
    "maxLength": MAX_PATH_LENGTH,
}
FILE_CONTENT_SCHEMA = object_schema(
    CONTENT_PROPERTIES, required=(), minProperties=1, maxProperties=1, title="FileContent"
)
FILES_SCHEMA = array_schema(
    object_schema(
        {"path": PATH_SCHEMA, **CONTENT_PROPERTIES},
        required=["path"],
        minProperties=2,
        maxProperties=2,
        title="FileInput",
    ),
    most=DEFAULT_CAPS.files,
    minItems=1,
)
PUSH_SCHEMA = object_schema(
    {
        "files": FILES_SCHEMA,
        "is_complete": boolean_schema(
            default=False,
            description="Remove files that are not in this list, if they were pushed with this key "
            "or the key can manage sources. If these are most of the files, a person "
            "must confirm the removal.",
        ),
    },
    required=["files"],
    title="FilePush",
)
PUSHED_FILE_SCHEMA = object_schema(
    {"path": TEXT_SCHEMA, "size": integer_schema(), "digest": TEXT_SCHEMA, "pushed_at": datetime_schema()},
    title="PushedFile",
)


def build_push_urls(find: SourceLookup) -> list[URLPattern]:
    """Build the URLs for pushed files.

    `find` looks up the source of a request. It must return only sources that the API key may see, so that a
    key limited to some agents can push only to the sources of these agents.
    """
    resource = PushedFileResource(find)
    options: dict[str, Any] = {
        "permission": Permission.EDIT,
        "bots": True,
        "touches": Touches.AGENT,
        "status": 202,
        "tag": "sources",
    }
    return [
        endpoint(
            "sources/<slug:slug>/files",
            "sources-files",
            get=Operation(
                resource.index,
                "List the files pushed to a source",
                operation_id="listSourceFiles",
                bots=True,
                touches=Touches.AGENT,
                answer=page_schema(PUSHED_FILE_SCHEMA),
                query=PAGINATION_PARAMS,
                tag="sources",
            ),
        ),
        endpoint(
            "sources/<slug:slug>/files:push",
            "sources-files-push",
            post=Operation(
                resource.push_many,
                "Push files to a source",
                operation_id="pushSourceFiles",
                body=PUSH_SCHEMA,
                body_example={"files": [{"path": "AGENTS.md", "text": "Be kind.\n"}], "is_complete": False},
                answer=PUSH_OUTCOME_SCHEMA,
                is_retryable=True,
                **options,
            ),
        ),
        endpoint(
            "sources/<slug:slug>/files/<path:path>",
            "sources-file",
            put=Operation(
                resource.push_one,
                "Push one file to a source",
                operation_id="pushSourceFile",
                body=FILE_CONTENT_SCHEMA,
                body_example={"text": "Be kind.\n"},
                answer=PUSH_OUTCOME_SCHEMA,
                refusals={412: "precondition_failed"},
                **options,
            ),
            delete=Operation(
                resource.remove,
                "Delete a pushed file",
                operation_id="deleteSourceFile",
                answer=object_schema({"run": RUN_SCHEMA}, title="FileDeletion"),
                refusals={412: "precondition_failed"},
                **options,
            ),
        ),
    ]


class PushedFileResource:
    """API operations on pushed files. `find` looks up the source that a request names."""

    def __init__(self, find: SourceLookup) -> None:
        self.find = find

    def index(self, call: ApiRequest, key: str) -> ApiResponse:
        rows = list_pushed_files(self.find(call, key)).select_related("content").defer("content__data")
        page = paginate_rows(rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""))
        return page_response(call, page, [pushed_file_json(row) for row in page.rows])

    def find_pushable(self, call: ApiRequest, key: str) -> Source:
        source = self.find(call, key)
        require_own_source(call, source)
        return source

    def push_many(self, call: ApiRequest, key: str) -> ApiResponse:
        source = self.find_pushable(call, key)
        files = [(entry["path"], decode_content(entry)) for entry in call.body["files"]]
        paths = [path for path, _ in files]
        bundle = bundle_files(files)
        try:
            run = push_bundle(
                source,
                bundle,
                replace=call.body.get("is_complete", False),
                by=call.actor,
                pusher=get_pusher(call),
            )
        except InvalidBundle as error:
            raise ProblemError(build_bundle_problem(error, paths)) from error
        return accept_push(source, run, bundle, push_refusals_json(list_push_refusals(run, bundle), paths))

    def push_one(self, call: ApiRequest, key: str, path: str) -> ApiResponse:
        source, data = self.find_pushable(call, key), decode_content(call.body)
        check_file_unchanged(call, source, path)
        try:
            run = push_file(source, path, data, by=call.actor, pusher=get_pusher(call))
        except InvalidInput as error:
            errors = [
                FieldError(message, parameter="path")
                for messages in error.errors.values()
                for message in messages
            ]
            raise ProblemError(validation_problem(errors)) from error
        return accept_push(source, run, FileBundle(((path, data),), ()), [])

    def remove(self, call: ApiRequest, key: str, path: str) -> ApiResponse:
        source = self.find_pushable(call, key)
        try:
            check_path(path)
        except FileRefused as error:
            raise Http404 from error
        check_file_unchanged(call, source, path)
        run = remove_pushed_file(source, path, by=call.actor, pusher=get_pusher(call))
        enqueue_refresh_run(run)
        return json_response({"run": run_json(run, source)}, 202, Location=get_run_url(run, source))


def get_pusher(call: ApiRequest) -> Pusher:
    return Pusher(call.caller.key, Permission.MANAGE_SOURCES in call.caller.permissions)


def accept_push(
    source: Source, run: RefreshRun, bundle: FileBundle, refused: list[dict[str, Any]]
) -> ApiResponse:
    """Enqueue the refresh after a push, and answer 202 with the outcome that the refresh will have."""
    enqueue_refresh_run(run)
    refused_paths = {refusal["path"] for refusal in refused}
    stored = {path: data for path, data in bundle.files if path not in refused_paths}
    outcome = {"run": run_json(run, source), "stored": len(stored), "refused": refused}
    return json_response(outcome | push_outcome_json(source, stored), 202, Location=get_run_url(run, source))


def list_push_refusals(run: RefreshRun, bundle: FileBundle) -> list[Refusal]:
    """List the refusals of this push, including conflicts with files that the source already has.

    The run may also hold refusals of earlier pushes. These are left out.
    """
    paths = {path for path, _ in bundle.files} | {refusal.path for refusal in bundle.refusals}
    return [Refusal(**refusal) for refusal in run.refusals if refusal["path"] in paths]


def build_bundle_problem(error: InvalidBundle, paths: list[str]) -> Any:
    refusals = push_refusals_json(error.refusals, paths)
    return validation_problem([FieldError(refusal["reason"], refusal["pointer"]) for refusal in refusals])


def check_file_unchanged(call: ApiRequest, source: Source, path: str) -> None:
    """If the client sent If-Match or If-None-Match, check them against the digest of the stored file."""
    if call.if_match is None and "If-None-Match" not in call.headers:
        return
    row = (
        list_pushed_files(source).filter(path=path).select_related("content").first()
        if path.isprintable()
        else None
    )
    etag = f'"{row.content.digest}"' if row else '""'
    check_put_precondition(call.headers, etag, exists=row is not None)


def list_pushed_files(source: Source) -> QuerySet[PushedFile]:
    return PushedFile.objects.in_workspace(source.workspace_id).filter(source=source)


def pushed_file_json(row: PushedFile) -> dict[str, Any]:
    return {
        "path": row.path,
        "size": row.content.size,
        "digest": row.content.digest,
        "pushed_at": datetime_json(row.pushed_at),
    }


def decode_content(entry: Mapping[str, str]) -> bytes:
    return entry["text"].encode() if "text" in entry else b64decode(entry["base64"])
