"""Bots say which digest they really used; what they are told shows them whether they are behind."""

from typing import Any

from django.urls import URLPattern

from personas.api.exception_handler import invalid
from personas.api.operations import Call, Operation
from personas.api.pagination import PAGING, page_answered, page_of_rows
from personas.api.problems import FieldError, ProblemError
from personas.api.responses import Answer, answered, moment_told
from personas.api.schema import (
    Shape,
    digest,
    flag,
    line,
    listed,
    moment,
    nullable,
    page_of,
    shape,
    slug,
    whole,
)
from personas.api.views import endpoint
from personas.roles import Permission
from prompts.api_lookup import is_limited, prompt_ids, visible_prompts
from prompts.ledger.api import KEY
from prompts.ledger.reports import Finding, report_digest
from prompts.models import DigestReport
from prompts.versions.serializers import TEXT

FACTS: dict[str, Shape] = {
    "id": whole(1),
    "agent": TEXT,
    "channel": TEXT,
    "digest": digest(),
    "is_version": flag(description="It is of some version of this prompt."),
    "is_last_handed": flag(description="It is what this key was handed last."),
    "ledger_id": nullable(whole(1)),
    "request_id": TEXT,
    "at": moment(),
}
HANDED = shape({"ledger_id": whole(1), "number": whole(1), "digest": digest(), "served_digest": digest()})
REPORT = shape({**FACTS, "key": KEY, "reporter": TEXT})
FINDING = shape(
    {
        **FACTS,
        "versions": listed(whole(1), most=100_000, description="Their numbers, newest first."),
        "labels": listed(TEXT, description="That stand there now."),
        "last_handed": nullable(HANDED),
    }
)
BODY = shape(
    {
        "agent": slug(),
        "channel": slug(),
        "digest": digest(description="Of the version, of its text, or of the bytes that were handed out."),
        "ledger_id": whole(1, description="The row of the fetch it came from."),
        "request_id": line(64),
    },
    required=["agent", "channel", "digest"],
)
LISTING = {"agent": slug(), "channel": slug(), "is_version": flag(), **PAGING}


def report(call: Call) -> Answer:
    said = call.body
    prompt = (
        visible_prompts(call.caller).filter(agent__slug=said["agent"], channel__slug=said["channel"]).first()
    )
    if prompt is None:
        raise ProblemError(invalid([FieldError("There is no such prompt here.", "/agent")]))
    found = report_digest(
        prompt,
        said["digest"],
        key=call.caller.key,
        by=call.actor,
        ledger_id=said.get("ledger_id"),
        request_id=said.get("request_id", ""),
    )
    return answered(finding_told(found), 201)


def index(call: Call) -> Answer:
    rows = DigestReport.objects.in_workspace(call.workspace).select_related(
        "key", "prompt__agent", "prompt__channel"
    )
    for name in ("agent", "channel"):
        if name in call.query:
            rows = rows.filter(**{f"prompt__{name}__slug": call.query[name]})
    if "is_version" in call.query:
        rows = rows.filter(version__isnull=not call.query["is_version"])
    if is_limited(call.caller):
        rows = rows.filter(prompt__in=prompt_ids(call.caller))
    rows = rows.filter(key=call.caller.key) if call.caller.is_bot else rows
    page = page_of_rows(
        rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""), newest_first=True
    )
    return page_answered(call, page, [report_told(row) for row in page.rows])


def facts_told(row: DigestReport) -> dict[str, Any]:
    return {
        "id": row.pk,
        "agent": row.prompt.agent.slug,
        "channel": row.prompt.channel.slug,
        "digest": row.digest,
        "is_version": row.version_id is not None,
        "is_last_handed": row.is_last_handed,
        "ledger_id": row.ledger_id,
        "request_id": row.request_id,
        "at": moment_told(row.at),
    }


def report_told(row: DigestReport) -> dict[str, Any]:
    return {
        **facts_told(row),
        "key": {"id": row.key.pk, "name": row.key.name},
        "reporter": row.reporter_label,
    }


def finding_told(found: Finding) -> dict[str, Any]:
    return {
        **facts_told(found.report),
        "versions": found.versions,
        "labels": found.labels,
        "last_handed": found.handed and found.handed._asdict(),
    }


urlpatterns: list[URLPattern] = [
    endpoint(
        "prompts:report",
        "prompts-report",
        post=Operation(
            report,
            "Say which digest was really used",
            permission=Permission.EDIT,
            bots=True,
            body=BODY,
            answer=FINDING,
            status=201,
            is_retryable=True,
            tag="reports",
        ),
    ),
    endpoint(
        "reports",
        "reports-list",
        get=Operation(
            index,
            "List what bots said they used, newest first",
            bots=True,
            answer=page_of(REPORT),
            query=LISTING,
            tag="reports",
        ),
    ),
]
