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
    datetime_schema,
    digest_schema,
    enum_schema,
    integer_schema,
    line_schema,
    object_schema,
    page_schema,
)
from personas.api.views import endpoint
from personas.erasure.services import ERASABLE_FIELDS
from personas.models import Erasure, ErasureProgress, Record
from personas.roles import Permission
from prompts.api_lookup import MAX_ID, check_number_bounds
from prompts.erasure.services import erase_record
from prompts.models import PromptVersion
from prompts.tasks import enqueue_erasure
from prompts.versions.selectors import HEAVY_COLUMNS
from prompts.versions.serializers import TEXT_SCHEMA

MODELS: dict[str, type[Record]] = {model.kind: model for model in ERASABLE_FIELDS}
ERASURE_SCHEMA = object_schema(
    {
        "id": integer_schema(1),
        "kind": enum_schema(MODELS, title="ErasureKind"),
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
        "versions": integer_schema(description="Number of versions that contained the text."),
    },
    title="Erasure",
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
NEW_ERASURE_SCHEMA = object_schema(
    {
        "kind": enum_schema(MODELS, title="ErasureKind"),
        "record": integer_schema(1, MAX_ID, description="ID of the record."),
        "reason": line_schema(
            500, least=1, description=("The reason. It is kept, so do not include personal data.")
        ),
    },
    title="ErasureInput",
)


def index(call: ApiRequest) -> ApiResponse:
    rows = Erasure.objects.in_workspace(call.workspace)
    page = paginate_rows(
        rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""), newest_first=True
    )
    return page_response(call, page, [erasure_json(row) for row in page.rows])


def erasure_detail(call: ApiRequest, key: int) -> ApiResponse:
    rows = Erasure.objects.in_workspace(call.workspace).filter(pk=check_number_bounds(key, MAX_ID))
    erasure = rows.first()
    if erasure is None:
        raise Http404
    return json_response(erasure_json(erasure))


def erasure_versions(call: ApiRequest, key: int) -> ApiResponse:
    """List the versions that contained the erased text."""
    rows = Erasure.objects.in_workspace(call.workspace).filter(pk=check_number_bounds(key, MAX_ID))
    erasure = rows.first()
    if erasure is None:
        raise Http404
    versions = PromptVersion.objects.in_workspace(call.workspace).filter(pk__in=erasure.versions)
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
    """Erase a record. 202 means that a worker still rebuilds prompts; the text is gone already."""
    model = MODELS[call.body["kind"]]
    record = model.objects.in_workspace(call.workspace).filter(pk=call.body["record"]).first()
    if record is None:
        raise ProblemError(validation_problem([FieldError("Record not found.", "/record")]))
    erasure = erase_record(record, reason=call.body["reason"], by=call.actor)
    enqueue_erasure(erasure)
    status = 202 if erasure.state == ErasureProgress.REBUILDING else 201
    return json_response(erasure_json(erasure), status, Location=f"/api/v1/erasures/{erasure.pk}")


def erasure_json(erasure: Erasure) -> dict[str, Any]:
    return {
        "id": erasure.pk,
        "kind": erasure.kind,
        "record": erasure.object_id,
        "reason": erasure.reason,
        "author": erasure.person_label,
        "erased_at": datetime_json(erasure.at),
        "status": erasure.state.value,
        "versions": len(erasure.versions),
    }


ACCEPTED_RESPONSE = {
    "description": "Erased; prompts are still being rebuilt.",
    "content": {"application/json": {"schema": ERASURE_SCHEMA}},
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
            answer=ERASURE_SCHEMA,
            status=201,
            extra_responses=[(202, ACCEPTED_RESPONSE)],
            is_retryable=True,
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
