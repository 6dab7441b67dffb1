"""REST operation that lists the prompts that contain a record or file."""

from typing import Any

from django.http import Http404
from django.urls import URLPattern

from personas.api.key_limits import Touches
from personas.api.operations import ApiRequest, Operation
from personas.api.pagination import PAGINATION_PARAMS, page_response, paginate_rows
from personas.api.responses import ApiResponse
from personas.api.schema import (
    boolean_schema,
    enum_schema,
    integer_schema,
    nullable_schema,
    object_schema,
    page_schema,
)
from personas.api.views import endpoint
from prompts.publishing.provenance.origins import RECORD_KINDS, find_record
from prompts.publishing.provenance.usage import RecordUsage, list_prompts_with_record, list_record_usages

TEXTS_SCHEMA = {"type": "array", "items": {"type": "string"}}
USAGE_SCHEMA = object_schema(
    {
        "agent": {"type": "string"},
        "channel": {"type": "string"},
        "is_current": boolean_schema(
            description="Whether the latest version, or a version with a label, contains it."
        ),
        "labels": TEXTS_SCHEMA
        | {"description": ("Labels whose version contains it. `latest` is the newest version.")},
        "past_labels": TEXTS_SCHEMA | {"description": "Labels that once pointed to a version with it."},
        "versions": {
            "type": "array",
            "items": object_schema(
                {
                    "first": integer_schema(1),
                    "last": nullable_schema(
                        integer_schema(1, description="Null if the newest version contains it.")
                    ),
                },
                title="VersionRange",
            ),
            "description": "The ranges of versions that contain it.",
        },
    },
    title="RecordUsage",
)


def api_list_usages(call: ApiRequest) -> ApiResponse:
    kind, pk = call.query["kind"], call.query["id"]
    if find_record(call.workspace, kind, pk) is None:
        raise Http404
    rows = list_prompts_with_record(call.workspace, kind, pk)
    page = paginate_rows(rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""))
    usages = list_record_usages(call.workspace, kind, pk, page.rows)
    return page_response(call, page, [usage_json(usage) for usage in usages])


def usage_json(usage: RecordUsage) -> dict[str, Any]:
    return {
        "agent": usage.prompt.agent.slug,
        "channel": usage.prompt.channel.slug,
        "is_current": usage.is_current,
        "labels": usage.labels,
        "past_labels": usage.past_labels,
        "versions": [{"first": one.first, "last": one.last} for one in usage.ranges],
    }


urlpatterns: list[URLPattern] = [
    endpoint(
        "usages",
        "usages-list",
        get=Operation(
            api_list_usages,
            "List the prompts that contain a record",
            operation_id="listUsages",
            touches=Touches.WORKSPACE,
            answer=page_schema(USAGE_SCHEMA),
            query={
                "kind": enum_schema(RECORD_KINDS, description="The kind of record.", title="UsageKind"),
                "id": integer_schema(1, description="The `id` of the record or context file."),
                **PAGINATION_PARAMS,
            },
            required_params=("kind", "id"),
            refusals={404: "not_found"},
            note="Prompts that contain the record now or did in an earlier version.",
            tag="prompt-versions",
        ),
    ),
]
