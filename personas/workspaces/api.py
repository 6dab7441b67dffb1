"""REST resource of the workspace of the key: read and change it, and create further workspaces."""

from hashlib import sha256
from typing import Any

from django.urls import URLPattern

from personas.api.etags import check_etag
from personas.api.key_limits import Touches
from personas.api.operations import ApiRequest, Operation
from personas.api.record_schema import REVIEW_LIFT_REASON_SCHEMA
from personas.api.responses import ApiResponse, datetime_json, encode_json, json_response
from personas.api.schema import (
    boolean_schema,
    datetime_schema,
    integer_schema,
    line_schema,
    model_field_schema,
    object_schema,
    slug_schema,
)
from personas.api.views import endpoint
from personas.models import Agent, Workspace
from personas.roles import Permission
from personas.workspaces.services import create_workspace, edit_workspace

MAX_NAME = Workspace._meta.get_field("name").max_length or 0
NAME_SCHEMA = line_schema(MAX_NAME, least=1, description="Display name of the workspace.")
POLICY_SCHEMA = model_field_schema(Agent._meta.get_field("release_policy"))
PATCH_FIELDS = {
    "name": NAME_SCHEMA,
    "default_release_policy": POLICY_SCHEMA,
    "requires_second_factor": boolean_schema(),
    "reason": REVIEW_LIFT_REASON_SCHEMA,
}
WORKSPACE_SCHEMA = object_schema(
    {
        "id": integer_schema(1),
        "slug": {"type": "string", "description": "Part of its page URLs. An owner can change it."},
        "name": {"type": "string"},
        "ledger_months": integer_schema(6, description="How many months ledger entries are kept."),
        "default_release_policy": POLICY_SCHEMA,
        "requires_second_factor": boolean_schema(),
        "created_at": datetime_schema(),
        "etag": {"type": "string", "description": "Send it as If-Match."},
    },
    title="Workspace",
)
WORKSPACE_EXAMPLE = {
    "id": 1,
    "slug": "harbour",
    "name": "Harbour",
    "ledger_months": 24,
    "default_release_policy": "automatic",
    "requires_second_factor": False,
    "created_at": "2026-03-07T14:55:05Z",
    "etag": '"5f2b0c1d9a3e4f60"',
}
MANAGE_OPTIONS: dict[str, Any] = {
    "permission": Permission.MANAGE_MEMBERS,
    "touches": Touches.WORKSPACE,
    "tag": "workspace",
}


def api_read_workspace(call: ApiRequest) -> ApiResponse:
    return workspace_response(call.workspace)


def api_edit_workspace(call: ApiRequest) -> ApiResponse:
    check_etag(get_workspace_etag(call.workspace), call.if_match)
    values = {
        name: value.strip() if isinstance(value, str) else value
        for name, value in call.body.items()
        if name in PATCH_FIELDS
    }
    return workspace_response(edit_workspace(call.workspace, values, by=call.actor))


def api_create_workspace(call: ApiRequest) -> ApiResponse:
    """Create a workspace for the user of the key. The key has no access to it."""
    owner = call.actor.user
    workspace = create_workspace(call.body["name"].strip(), call.body["slug"], owner=owner)
    return workspace_response(workspace, status=201)


def workspace_response(workspace: Workspace, status: int = 200) -> ApiResponse:
    etag = get_workspace_etag(workspace)
    return json_response({**get_workspace_fields(workspace), "etag": etag}, status, ETag=etag)


def get_workspace_fields(workspace: Workspace) -> dict[str, Any]:
    return {
        "id": workspace.pk,
        "slug": workspace.slug,
        "name": workspace.name,
        "ledger_months": workspace.ledger_months,
        "default_release_policy": workspace.default_release_policy,
        "requires_second_factor": workspace.requires_second_factor,
        "created_at": datetime_json(workspace.created_at),
    }


def get_workspace_etag(workspace: Workspace) -> str:
    return f'"{sha256(encode_json(get_workspace_fields(workspace))).hexdigest()[:16]}"'


urlpatterns: list[URLPattern] = [
    endpoint(
        "workspace",
        "workspace-one",
        get=Operation(
            api_read_workspace,
            "Get the workspace of the key",
            operation_id="getWorkspace",
            bots=True,
            # Not WORKSPACE: keys that are limited to agents, channels or labels may read this too.
            touches=Touches.AGENT,
            answer=WORKSPACE_SCHEMA,
            example=WORKSPACE_EXAMPLE,
            tag="workspace",
        ),
        patch=Operation(
            api_edit_workspace,
            "Change the workspace of the key",
            operation_id="updateWorkspace",
            body=object_schema(PATCH_FIELDS, required=(), title="WorkspacePatch"),
            body_example={"name": "Harbour"},
            answer=WORKSPACE_SCHEMA,
            example=WORKSPACE_EXAMPLE,
            is_conditional=True,
            note="Requires an admin key of an owner with the verb `manage`. `default_release_policy` applies "
            "to new agents; to change it from reviewed to automatic, the key needs the verb `override` too, "
            "and the body a `reason`. `requires_second_factor` applies to pages, not to keys; only a user "
            "with a second factor can turn it on.",
            **MANAGE_OPTIONS,
        ),
    ),
    endpoint(
        "workspaces",
        "workspaces-list",
        post=Operation(
            api_create_workspace,
            "Create a workspace",
            operation_id="createWorkspace",
            body=object_schema({"name": NAME_SCHEMA, "slug": slug_schema()}, title="WorkspaceInput"),
            body_example={"name": "Quay", "slug": "quay"},
            answer=WORKSPACE_SCHEMA,
            example=WORKSPACE_EXAMPLE | {"id": 2, "slug": "quay", "name": "Quay"},
            status=201,
            is_retryable=True,
            refusals={429: "workspace_limit_reached"},
            note="The user of the key becomes its owner; it counts towards the limits of that user. If the "
            "slug is taken, a few letters are appended. The key has no access to the new workspace: create a "
            "key there in the browser. Requires an admin key of an owner with the verb `manage`.",
            **MANAGE_OPTIONS,
        ),
    ),
]
