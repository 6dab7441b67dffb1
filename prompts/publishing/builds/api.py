"""REST resource of rebuilds: rebuild all prompts of a workspace, and the progress of rebuilds."""

from functools import partial
from typing import Any

from django.db import transaction
from django.urls import URLPattern

from personas.api.key_limits import Touches
from personas.api.operations import ApiRequest, Operation
from personas.api.responses import ApiResponse, datetime_json, json_response
from personas.api.schema import (
    boolean_schema,
    datetime_schema,
    integer_schema,
    nullable_schema,
    object_schema,
)
from personas.api.views import endpoint
from personas.models import Agent
from personas.roles import Permission
from prompts.publishing.builds.causes import request_rebuild
from prompts.publishing.builds.progress import get_build_progress, list_agent_channels, list_unbuilt_prompts
from prompts.publishing.versions.serializers import TEXT_SCHEMA
from prompts.tasks import enqueue_rebuilds

MAX_FAILED = 200
PROGRESS_SCHEMA = object_schema(
    {
        "since": nullable_schema(
            datetime_schema(description=("Start of the counted period. Null if nothing is counted."))
        ),
        "waiting": integer_schema(description="Number of prompts waiting for a build."),
        "rebuilt": integer_schema(description="Number of prompts built since then."),
        "failed": integer_schema(description="Number of prompts that could not be built since then."),
        "is_slow": boolean_schema(
            description=("Whether a build has been waiting so long that workers may be down.")
        ),
        "failed_prompts": {
            "type": "array",
            "items": object_schema(
                {"agent": TEXT_SCHEMA, "channel": TEXT_SCHEMA, "problem": TEXT_SCHEMA}, title="FailedPrompt"
            ),
            "description": f"All prompts whose last build failed, at most {MAX_FAILED}.",
        },
    },
    title="RebuildProgress",
)


def api_rebuild_progress(call: ApiRequest) -> ApiResponse:
    return json_response(progress_json(call))


@transaction.atomic
def api_rebuild_all(call: ApiRequest) -> ApiResponse:
    """Request rebuilds of all active agents, as the page does."""
    rows = Agent.objects.in_workspace(call.workspace).filter(archived_at=None)
    ids = list(rows.order_by("pk").values_list("pk", flat=True))
    # The causes are stored, so a broker outage only delays the rebuild.
    request_rebuild(call.workspace, ids, by=call.actor)
    transaction.on_commit(partial(enqueue_rebuilds, call.workspace.pk), robust=True)
    prompts = list_agent_channels(call.workspace, ids).count()
    return json_response({"prompts": prompts}, 202, Location="/api/v1/rebuild")


def progress_json(call: ApiRequest) -> dict[str, Any]:
    progress = get_build_progress(call.workspace, call.query.get("since"))
    failed = list_unbuilt_prompts(call.workspace)[:MAX_FAILED]
    return {
        "since": progress and datetime_json(progress.since),
        "waiting": progress.waiting if progress else 0,
        "rebuilt": progress.rebuilt if progress else 0,
        "failed": progress.unbuilt if progress else 0,
        "is_slow": bool(progress and progress.is_slow),
        "failed_prompts": [
            {"agent": row.agent.slug, "channel": row.channel.slug, "problem": row.problem} for row in failed
        ],
    }


urlpatterns: list[URLPattern] = [
    endpoint(
        "rebuild",
        "rebuild",
        get=Operation(
            api_rebuild_progress,
            "Get the progress of rebuilds",
            operation_id="getRebuildProgress",
            touches=Touches.WORKSPACE,
            answer=PROGRESS_SCHEMA,
            query={"since": datetime_schema(description="Count from this time, including finished builds.")},
            tag="prompts",
        ),
        post=Operation(
            api_rebuild_all,
            "Rebuild all prompts of the workspace",
            operation_id="rebuildWorkspace",
            permission=Permission.EDIT,
            touches=Touches.WORKSPACE,
            answer=object_schema(
                {"prompts": integer_schema(description="Number of prompts that are rebuilt.")},
                title="RebuildRequest",
            ),
            status=202,
            is_retryable=True,
            note=(
                "Workers rebuild the prompts. `GET /rebuild` returns the progress. If the text is "
                "unchanged, no new version is created."
            ),
            tag="prompts",
        ),
    ),
]
