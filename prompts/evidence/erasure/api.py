"""REST resource for erasures: list, read, and erase a memory or user profile."""

from typing import Any

from django.http import Http404
from django.urls import URLPattern

from personas.api.exception_handler import validation_problem
from personas.api.key_limits import Touches
from personas.api.operations import ApiRequest, Operation
from personas.api.pagination import PAGINATION_PARAMS, page_response, paginate_rows
from personas.api.problems import FieldError, ProblemError
from personas.api.responses import ApiResponse, datetime_json, json_response
from personas.api.schema import (
    Schema,
    array_schema,
    boolean_schema,
    datetime_schema,
    digest_schema,
    enum_schema,
    integer_schema,
    line_schema,
    object_schema,
    page_schema,
)
from personas.api.views import endpoint
from personas.models import Erasure, ErasureProgress, Record
from personas.roles import Permission
from prompts.api_lookup import MAX_ID, check_number_bounds
from prompts.evidence.erasure.same_text import ERASABLE_MODELS, MAX_MATCHES, SameText, find_same_text
from prompts.evidence.erasure.services import erase_records, iterate_versions_with_record
from prompts.models import PromptVersion
from prompts.publishing.versions.selectors import HEAVY_COLUMNS
from prompts.publishing.versions.serializers import TEXT_SCHEMA
from prompts.tasks import enqueue_erasure

ERASURE_FIELDS: dict[str, Schema] = {
    "id": integer_schema(1),
    "kind": enum_schema(ERASABLE_MODELS, title="ErasureKind"),
    "record": integer_schema(1, description="ID of the erased record."),
    "reason": TEXT_SCHEMA,
    "author": TEXT_SCHEMA,
    "erased_at": datetime_schema(),
    "status": enum_schema(
        ErasureProgress.values,
        description="The text is erased in both states. While prompts are being rebuilt, fetches of "
        "those that contained it get 410.",
        title="ErasureState",
    ),
    "versions": integer_schema(description="Number of versions that contained the record. They get 410."),
}
ERASURE_SCHEMA = object_schema(ERASURE_FIELDS, title="Erasure")
SAME_TEXT_SCHEMA = object_schema(
    {
        "kind": {"type": "string", "description": "The kind of record, or `context_file`."},
        "record": integer_schema(1, description="ID of the record or file."),
        "name": TEXT_SCHEMA,
        "is_current": boolean_schema(
            description="Whether its current text contains the text. Otherwise only an earlier revision does."
        ),
        "is_erasable": boolean_schema(description="Whether it can be sent in `also_erase`."),
    },
    title="SameText",
)
ALSO_CONTAINS_SCHEMA = array_schema(
    SAME_TEXT_SCHEMA,
    most=MAX_MATCHES,
    description="Other records and files that contain the text, or a sentence of it. They are not erased.",
)
NEW_ERASURE_RESULT_SCHEMA = object_schema(
    ERASURE_FIELDS
    | {
        "also_erased": array_schema(
            ERASURE_SCHEMA, most=MAX_MATCHES, description="The erasures of the records in `also_erase`."
        ),
        "also_contains": ALSO_CONTAINS_SCHEMA,
    },
    title="ErasureResult",
)
PREVIEW_SCHEMA = object_schema(
    {
        "versions": integer_schema(description="Number of versions that contain the record."),
        "also_contains": ALSO_CONTAINS_SCHEMA,
    },
    title="ErasurePreview",
)
ERASED_VERSION_SCHEMA = object_schema(
    {
        "agent": TEXT_SCHEMA,
        "channel": TEXT_SCHEMA,
        "number": integer_schema(1),
        "digest": digest_schema(),
        "hash": TEXT_SCHEMA,
        "created_at": datetime_schema(),
    },
    title="ErasedVersion",
)
RECORD_FIELDS: dict[str, Schema] = {
    "kind": enum_schema(ERASABLE_MODELS, title="ErasureKind"),
    "record": integer_schema(1, MAX_ID, description="ID of the record."),
}
ERASABLE_RECORD_SCHEMA = object_schema(RECORD_FIELDS, title="ErasableRecord")
NEW_ERASURE_SCHEMA = object_schema(
    RECORD_FIELDS
    | {
        "reason": line_schema(
            500, least=1, description=("The reason. It is kept, so do not include personal data.")
        ),
        "also_erase": array_schema(
            ERASABLE_RECORD_SCHEMA,
            most=MAX_MATCHES,
            description="Further records to erase in the same transaction, such as those in `also_contains`.",
        ),
    },
    required=["kind", "record", "reason"],
    title="ErasureInput",
)


def index(call: ApiRequest) -> ApiResponse:
    rows = Erasure.objects.in_workspace(call.workspace)
    page = paginate_rows(
        rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""), newest_first=True
    )
    return page_response(call, page, [erasure_json(row) for row in page.rows])


def get_erasure(call: ApiRequest, key: int) -> Erasure:
    rows = Erasure.objects.in_workspace(call.workspace).filter(pk=check_number_bounds(key, MAX_ID))
    erasure = rows.first()
    if erasure is None:
        raise Http404
    return erasure


def erasure_detail(call: ApiRequest, key: int) -> ApiResponse:
    return json_response(erasure_json(get_erasure(call, key)))


def erasure_versions(call: ApiRequest, key: int) -> ApiResponse:
    """List the versions that contained the erased text."""
    erased = get_erasure(call, key).versions
    versions = PromptVersion.objects.in_workspace(call.workspace).filter(pk__in=erased)
    versions = versions.select_related("prompt__agent", "prompt__channel").defer(*HEAVY_COLUMNS)
    page = paginate_rows(versions, limit=call.query["limit"], cursor=call.query.get("cursor", ""))
    return page_response(call, page, [erased_version_json(version) for version in page.rows])


def erased_version_json(version: PromptVersion) -> dict[str, Any]:
    return {
        "agent": version.prompt.agent.slug,
        "channel": version.prompt.channel.slug,
        "number": version.number,
        "digest": version.digest,
        "hash": version.hash,
        "created_at": datetime_json(version.created_at),
    }


def create_erasure(call: ApiRequest) -> ApiResponse:
    """Erase records. 202 means that a worker still rebuilds prompts; the text is gone already."""
    record = require_erasable_record(call, call.body, "/record")
    others = [
        require_erasable_record(call, item, f"/also_erase/{position}/record")
        for position, item in enumerate(call.body.get("also_erase", ()))
    ]
    also = {(one.kind, one.pk): one for one in others if (one.kind, one.pk) != (record.kind, record.pk)}
    # Search before the erasure, because the text is gone afterwards.
    same_text = [one for one in find_same_text(record) if (one.kind, one.id) not in also]
    erasures = erase_records([record, *also.values()], reason=call.body["reason"], by=call.actor)
    for erasure in erasures:
        enqueue_erasure(erasure)
    first, *more = erasures
    body = erasure_json(first) | {
        "also_erased": [erasure_json(one) for one in more],
        "also_contains": [same_text_json(one) for one in same_text],
    }
    is_rebuilding = any(one.status == ErasureProgress.REBUILDING for one in erasures)
    return json_response(body, 202 if is_rebuilding else 201, Location=f"/api/v1/erasures/{first.pk}")


def preview_erasure(call: ApiRequest) -> ApiResponse:
    """Count the versions that would be refused, and list what else contains the text. Nothing changes."""
    record = require_erasable_record(call, call.body, "/record")
    versions = iterate_versions_with_record(call.workspace, record.kind, record.pk)
    body = {
        "versions": sum(1 for _version in versions),
        "also_contains": [same_text_json(one) for one in find_same_text(record)],
    }
    return json_response(body)


def require_erasable_record(call: ApiRequest, item: dict[str, Any], pointer: str) -> Record:
    rows = ERASABLE_MODELS[item["kind"]].objects.in_workspace(call.workspace)
    record = rows.filter(pk=item["record"]).first()
    if record is None:
        raise ProblemError(validation_problem([FieldError("Record not found.", pointer)]))
    return record


def same_text_json(match: SameText) -> dict[str, Any]:
    return {
        "kind": match.kind,
        "record": match.id,
        "name": match.name,
        "is_current": match.is_current,
        "is_erasable": match.is_erasable,
    }


def erasure_json(erasure: Erasure) -> dict[str, Any]:
    return {
        "id": erasure.pk,
        "kind": erasure.kind,
        "record": erasure.object_id,
        "reason": erasure.reason,
        "author": erasure.author_label,
        "erased_at": datetime_json(erasure.at),
        "status": erasure.status.value,
        "versions": len(erasure.versions),
    }


ACCEPTED_RESPONSE = {
    "description": "Erased; prompts are still being rebuilt.",
    "content": {"application/json": {"schema": NEW_ERASURE_RESULT_SCHEMA}},
}
urlpatterns: list[URLPattern] = [
    endpoint(
        "erasures",
        "erasures-list",
        get=Operation(
            index,
            "List erasures, newest first",
            operation_id="listErasures",
            touches=Touches.WORKSPACE,
            answer=page_schema(ERASURE_SCHEMA),
            query=PAGINATION_PARAMS,
            tag="erasures",
        ),
        post=Operation(
            create_erasure,
            "Erase a memory or user profile",
            operation_id="createErasure",
            permission=Permission.MANAGE_KEYS,
            touches=Touches.WORKSPACE,
            body=NEW_ERASURE_SCHEMA,
            answer=NEW_ERASURE_RESULT_SCHEMA,
            status=201,
            extra_responses=[(202, ACCEPTED_RESPONSE)],
            is_retryable=True,
            tag="erasures",
        ),
    ),
    endpoint(
        "erasures:preview",
        "erasures-preview",
        post=Operation(
            preview_erasure,
            "Preview an erasure",
            operation_id="previewErasure",
            permission=Permission.MANAGE_KEYS,
            touches=Touches.WORKSPACE,
            budget="render",
            body=ERASABLE_RECORD_SCHEMA,
            answer=PREVIEW_SCHEMA,
            tag="erasures",
        ),
    ),
    endpoint(
        "erasures/<int:id>",
        "erasures-one",
        get=Operation(
            erasure_detail,
            "Get an erasure",
            operation_id="getErasure",
            touches=Touches.WORKSPACE,
            answer=ERASURE_SCHEMA,
            tag="erasures",
        ),
    ),
    endpoint(
        "erasures/<int:id>/versions",
        "erasures-versions",
        get=Operation(
            erasure_versions,
            "List the versions that contained the erased text",
            operation_id="listErasureVersions",
            touches=Touches.WORKSPACE,
            answer=page_schema(ERASED_VERSION_SCHEMA),
            query=PAGINATION_PARAMS,
            tag="erasures",
        ),
    ),
]
