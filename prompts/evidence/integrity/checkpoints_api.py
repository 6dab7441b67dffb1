"""REST resources of checkpoints, signing keys and verification runs."""

from typing import Any

from django.urls import URLPattern

from personas.api.exception_handler import RecordNotFound
from personas.api.key_limits import Touches
from personas.api.operations import ApiRequest, Operation
from personas.api.pagination import PAGINATION_PARAMS, complete_list_response, page_response, paginate_rows
from personas.api.responses import ApiResponse, datetime_json, json_response
from personas.api.schema import (
    any_object_schema,
    boolean_schema,
    datetime_schema,
    enum_schema,
    integer_schema,
    nullable_schema,
    object_schema,
    page_schema,
)
from personas.api.views import endpoint
from personas.roles import Permission
from prompts.api_lookup import MAX_ID, check_number_bounds
from prompts.evidence.integrity.services import request_verification
from prompts.models import Checkpoint, SigningKey, VerificationRun, VerificationStatus
from prompts.publishing.versions.serializers import TEXT_SCHEMA
from prompts.tasks import enqueue_verification

CHECKPOINT_SCHEMA = object_schema(
    {
        "sequence": integer_schema(1),
        "at": datetime_schema(),
        "hash": TEXT_SCHEMA,
        "previous_hash": TEXT_SCHEMA
        | {"description": ("Digest of the previous checkpoint. Empty for the first.")},
        "key_id": TEXT_SCHEMA | {"description": "ID of the signing key."},
        "signature": TEXT_SCHEMA,
        "statement": any_object_schema(description="The signed content: the heads of all hash chains."),
    },
    title="Checkpoint",
)
SIGNING_KEY_SCHEMA = object_schema(
    {
        "key_id": TEXT_SCHEMA,
        "public_key": TEXT_SCHEMA | {"description": "In PEM format."},
        "first_used_at": datetime_schema(),
    },
    title="SigningKey",
)
VERIFICATION_RUN_SCHEMA = object_schema(
    {
        "id": integer_schema(1),
        "status": enum_schema(VerificationStatus.values, title="VerificationStatus"),
        "requested_by": TEXT_SCHEMA,
        "requested_at": datetime_schema(),
        "started_at": nullable_schema(datetime_schema()),
        "ended_at": nullable_schema(datetime_schema()),
        "is_valid": nullable_schema(boolean_schema(description="Null until the run is done.")),
        "rows": any_object_schema(description="Number of checked rows by table."),
        "error_count": integer_schema(
            description=("Number of rows with an error. `errors` contains the first of them.")
        ),
        "errors": {
            "type": "array",
            "items": object_schema(
                {"table": TEXT_SCHEMA, "key": TEXT_SCHEMA, "reason": TEXT_SCHEMA}, title="VerificationError"
            ),
        },
        "notes": {"type": "array", "items": TEXT_SCHEMA},
        "problem": TEXT_SCHEMA | {"description": "Why the run failed; empty otherwise."},
    },
    title="VerificationRun",
)
READ_OPTIONS: dict[str, Any] = {"touches": Touches.WORKSPACE, "tag": "integrity"}


def api_list_checkpoints(call: ApiRequest) -> ApiResponse:
    rows = Checkpoint.objects.in_workspace(call.workspace).defer("heads")
    page = paginate_rows(
        rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""), newest_first=True
    )
    return page_response(call, page, [checkpoint_json(row) for row in page.rows])


def checkpoint_json(row: Checkpoint) -> dict[str, Any]:
    return {
        "sequence": row.sequence,
        "at": datetime_json(row.at),
        "hash": row.hash,
        "previous_hash": row.previous_hash,
        "key_id": row.key_id,
        "signature": row.signature,
        "statement": row.body,
    }


def api_list_signing_keys(call: ApiRequest) -> ApiResponse:
    rows = SigningKey.objects.in_workspace(call.workspace).order_by("-pk")
    return complete_list_response(
        [
            {
                "key_id": row.key_id,
                "public_key": row.public_key,
                "first_used_at": datetime_json(row.first_used_at),
            }
            for row in rows
        ]
    )


def api_list_verifications(call: ApiRequest) -> ApiResponse:
    rows = VerificationRun.objects.in_workspace(call.workspace)
    page = paginate_rows(
        rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""), newest_first=True
    )
    return page_response(call, page, [verification_json(row) for row in page.rows])


def api_read_verification(call: ApiRequest, key: int) -> ApiResponse:
    rows = VerificationRun.objects.in_workspace(call.workspace).filter(pk=check_number_bounds(key, MAX_ID))
    run = rows.first()
    if run is None:
        raise RecordNotFound(f"No verification {key} in this workspace.")
    return json_response(verification_json(run))


def api_start_verification(call: ApiRequest) -> ApiResponse:
    run = request_verification(call.workspace, by=call.actor)
    enqueue_verification(run)
    return json_response(verification_json(run), 202, Location=f"/api/v1/verifications/{run.pk}")


def verification_json(run: VerificationRun) -> dict[str, Any]:
    result = run.result
    return {
        "id": run.pk,
        "status": run.status,
        "requested_by": run.requested_label,
        "requested_at": datetime_json(run.requested_at),
        "started_at": run.started_at and datetime_json(run.started_at),
        "ended_at": run.ended_at and datetime_json(run.ended_at),
        "is_valid": result.get("is_sound"),
        "rows": result.get("rows", {}),
        "error_count": result.get("bad", 0),
        "errors": [get_fault_fields(fault) for fault in result.get("faults", [])],
        "notes": result.get("notes", []),
        "problem": run.problem,
    }


def get_fault_fields(fault: dict[str, Any]) -> dict[str, Any]:
    return {name: fault[name] for name in ("table", "key", "reason")}


urlpatterns: list[URLPattern] = [
    endpoint(
        "checkpoints",
        "checkpoints-list",
        get=Operation(
            api_list_checkpoints,
            "List checkpoints, newest first",
            operation_id="listCheckpoints",
            answer=page_schema(CHECKPOINT_SCHEMA),
            query=PAGINATION_PARAMS,
            note="Signed statements about the hash chains of the workspace.",
            **READ_OPTIONS,
        ),
    ),
    endpoint(
        "signing-keys",
        "signing-keys-list",
        get=Operation(
            api_list_signing_keys,
            "List the public keys of checkpoints",
            operation_id="listSigningKeys",
            answer=page_schema(SIGNING_KEY_SCHEMA),
            note="Before you trust a key, compare it with a copy that you got through another channel.",
            **READ_OPTIONS,
        ),
    ),
    endpoint(
        "verifications",
        "verifications-list",
        get=Operation(
            api_list_verifications,
            "List verification runs, newest first",
            operation_id="listVerifications",
            answer=page_schema(VERIFICATION_RUN_SCHEMA),
            query=PAGINATION_PARAMS,
            **READ_OPTIONS,
        ),
        post=Operation(
            api_start_verification,
            "Start a verification run",
            operation_id="createVerification",
            permission=Permission.EDIT,
            answer=VERIFICATION_RUN_SCHEMA,
            status=202,
            is_retryable=True,
            note=(
                "A worker verifies all hash chains of the workspace. If a run is in progress, it is returned."
            ),
            **READ_OPTIONS,
        ),
    ),
    endpoint(
        "verifications/<int:id>",
        "verifications-one",
        get=Operation(
            api_read_verification,
            "Get a verification run",
            operation_id="getVerification",
            answer=VERIFICATION_RUN_SCHEMA,
            **READ_OPTIONS,
        ),
    ),
]
