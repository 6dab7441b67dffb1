"""REST API for refresh runs: list and detail with refusals."""

from typing import Any

from personas.api.operations import ApiRequest
from personas.api.pagination import page_response, paginate_rows
from personas.api.responses import ApiResponse, datetime_json, json_response
from personas.api.schema import (
    Schema,
    array_schema,
    datetime_schema,
    enum_schema,
    integer_schema,
    nullable_schema,
    object_schema,
)
from skills.api_helpers import TEXT_SCHEMA, row_or_404
from skills.discovery.search import CUT_FOLDER_RULES
from skills.models import RefreshRun, RunStatus, Source
from skills.sources.selectors import list_refresh_runs

COUNTS_SCHEMA: Schema = {"title": "Counts", "type": "object", "additionalProperties": integer_schema()}
RUN_PROPERTIES: dict[str, Schema] = {
    "id": integer_schema(1),
    "source": TEXT_SCHEMA,
    "status": enum_schema(RunStatus.values, title="RunStatus"),
    "cause": TEXT_SCHEMA,
    "requested_by": TEXT_SCHEMA,
    "requested_at": datetime_schema(),
    "started_at": nullable_schema(datetime_schema()),
    "finished_at": nullable_schema(datetime_schema()),
    "seen": integer_schema(),
    "read": integer_schema(),
    "refused": integer_schema(),
    "missing": integer_schema(description="Number of files that a held run did not find. They stay in use."),
    "outcome": COUNTS_SCHEMA | {"description": "Number of files by new status."},
    "error": TEXT_SCHEMA,
}
RUN_SCHEMA = object_schema(RUN_PROPERTIES, title="SourceRun")
REFUSAL_SCHEMA = object_schema(
    {"path": TEXT_SCHEMA, "rule": TEXT_SCHEMA, "reason": TEXT_SCHEMA}, title="FileRefusal"
)
RUN_DETAIL_SCHEMA = object_schema(
    {
        **RUN_PROPERTIES,
        "refusals": array_schema(REFUSAL_SCHEMA, most=100_000),
        "cut_folders": array_schema(
            TEXT_SCHEMA,
            most=100_000,
            description=("Folders with too many entries or files, which were read only in part."),
        ),
        "missing_paths": array_schema(TEXT_SCHEMA, most=100_000),
    },
    title="SourceRunDetail",
)


def index(call: ApiRequest, source: Source) -> ApiResponse:
    page = paginate_rows(
        list_refresh_runs(source),
        limit=call.query["limit"],
        cursor=call.query.get("cursor", ""),
        newest_first=True,
    )
    return page_response(call, page, [run_json(run, source) for run in page.rows])


def detail(call: ApiRequest, source: Source, number: int) -> ApiResponse:
    run = row_or_404(list_refresh_runs(source).defer(None), number)
    cut_folders = [refusal["path"] for refusal in run.refusals if refusal["rule"] in CUT_FOLDER_RULES]
    return json_response(
        {
            **run_json(run, source),
            "refusals": run.refusals,
            "cut_folders": cut_folders,
            "missing_paths": run.missing_paths or [],
        }
    )


def get_run_url(run: RefreshRun, source: Source) -> str:
    return f"/api/v1/sources/{source.slug}/runs/{run.pk}"


def run_json(run: RefreshRun, source: Source) -> dict[str, Any]:
    return {
        "id": run.pk,
        "source": source.slug,
        "status": run.status,
        "cause": run.cause,
        "requested_by": run.actor_label,
        "requested_at": datetime_json(run.requested_at),
        "started_at": run.started_at and datetime_json(run.started_at),
        "finished_at": run.finished_at and datetime_json(run.finished_at),
        "seen": run.seen,
        "read": run.read,
        "refused": run.refused,
        "missing": run.missing,
        "outcome": run.outcome,
        "error": run.error,
    }
