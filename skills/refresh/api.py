"""Looks at a source: what each saw, left out and changed."""

from typing import Any

from personas.api.operations import Call
from personas.api.pagination import page_answered, page_of_rows
from personas.api.responses import Answer, answered, moment_told
from personas.api.schema import Shape, choice, listed, moment, nullable, shape, whole
from skills.api_helpers import TEXT, row_or_404
from skills.models import RefreshRun, RunStatus, Source
from skills.sources.selectors import runs_of

COUNTS: Shape = {"type": "object", "additionalProperties": whole()}
TOLD: dict[str, Shape] = {
    "id": whole(1),
    "source": TEXT,
    "status": choice(RunStatus.values),
    "cause": TEXT,
    "by": TEXT,
    "requested_at": moment(),
    "started_at": nullable(moment()),
    "finished_at": nullable(moment()),
    "seen": whole(),
    "read": whole(),
    "refused": whole(),
    "outcome": COUNTS | {"description": "How many files came into which state."},
    "error": TEXT,
}
RUN = shape(TOLD)
REFUSAL = shape({"path": TEXT, "rule": TEXT, "reason": TEXT})
FULL_RUN = shape({**TOLD, "refusals": listed(REFUSAL, most=100_000)})


def index(call: Call, source: Source) -> Answer:
    page = page_of_rows(
        runs_of(source), limit=call.query["limit"], cursor=call.query.get("cursor", ""), newest_first=True
    )
    return page_answered(call, page, [run_told(run, source) for run in page.rows])


def read(call: Call, source: Source, number: int) -> Answer:
    run = row_or_404(runs_of(source).defer(None), number)
    return answered({**run_told(run, source), "refusals": run.refusals})


def run_address(run: RefreshRun, source: Source) -> str:
    return f"/api/v1/sources/{source.slug}/runs/{run.pk}"


def run_told(run: RefreshRun, source: Source) -> dict[str, Any]:
    return {
        "id": run.pk,
        "source": source.slug,
        "status": run.status,
        "cause": run.cause,
        "by": run.actor_label,
        "requested_at": moment_told(run.requested_at),
        "started_at": run.started_at and moment_told(run.started_at),
        "finished_at": run.finished_at and moment_told(run.finished_at),
        "seen": run.seen,
        "read": run.read,
        "refused": run.refused,
        "outcome": run.outcome,
        "error": run.error,
    }
