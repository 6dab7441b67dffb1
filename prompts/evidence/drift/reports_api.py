"""REST resource of digest reports.

A bot reports the digest of the prompt it used. The response says which versions and labels match it.
"""

from typing import Any

from django.urls import URLPattern

from personas.api.authentication import ApiClient
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
    nullable_schema,
    object_schema,
    page_schema,
    slug_schema,
)
from personas.api.views import endpoint
from personas.roles import Permission
from prompts.api_lookup import can_see_label, is_scope_limited, list_visible_prompt_ids, list_visible_prompts
from prompts.evidence.drift.details import LineChanges, ReportDetails, parse_report_details
from prompts.evidence.drift.reports import DigestReportResult, LoadedFile, report_digest
from prompts.evidence.ledger.api import KEY_SCHEMA
from prompts.models import BotStatus, DigestReport
from prompts.publishing.versions.serializers import TEXT_SCHEMA

STATUS_SCHEMA = enum_schema(
    BotStatus.values,
    description="`same`: the released version is loaded. `outdated`: another version is loaded. "
    "`never_released`: the loaded text matches no version. `unknown`: nothing was reported since the last "
    "fetch of another version.",
    title="BotStatus",
)
# Larger files are reported without their text.
MAX_TEXT_LENGTH = 400_000
CHANGED_LINES_SCHEMA = object_schema(
    {
        "version": integer_schema(1, description="The version that the text was compared with."),
        "ledger_id": nullable_schema(
            integer_schema(1, description="The fetch that served it; null if it was not served to this key.")
        ),
        "blocks": array_schema(
            object_schema(
                {
                    "line": integer_schema(1, description="First line of the loaded text that differs."),
                    "line_count": integer_schema(description="Number of lines. 0 if lines are missing here."),
                    "served_line": integer_schema(1),
                    "served_line_count": integer_schema(description="Number of lines that they replace."),
                },
                title="ChangedLineBlock",
            )
        ),
        "more_blocks": integer_schema(description="Number of blocks that are not listed."),
    },
    title="ChangedLines",
)
MAX_SKILLS = 500
LOADED_SKILL_SCHEMA = object_schema(
    {
        "name": TEXT_SCHEMA,
        "digest": digest_schema(
            description="Salted digest of the file if a version offers it, otherwise as reported."
        ),
        "is_known": boolean_schema(description="Whether a version of the prompt offers this file."),
    },
    description="A SKILL.md that the bot has loaded.",
    title="LoadedSkill",
)
DETAIL_FIELDS: dict[str, Schema] = {
    "path": TEXT_SCHEMA,
    "reason": TEXT_SCHEMA,
    "session": TEXT_SCHEMA,
    "changed_lines": nullable_schema(CHANGED_LINES_SCHEMA),
    "skills": nullable_schema(array_schema(LOADED_SKILL_SCHEMA, most=MAX_SKILLS)),
}
REPORT_FIELDS: dict[str, Schema] = {
    "id": integer_schema(1),
    "agent": TEXT_SCHEMA,
    "channel": TEXT_SCHEMA,
    "digest": digest_schema(),
    "is_known_version": boolean_schema(description="Whether it is the digest of a version of this prompt."),
    "is_last_served": boolean_schema(description="Whether it is the version that this key was last served."),
    "ledger_id": nullable_schema(integer_schema(1)),
    "request_id": TEXT_SCHEMA,
    "status": nullable_schema(STATUS_SCHEMA),
    **DETAIL_FIELDS,
    "created_at": datetime_schema(),
}
LAST_SERVED_SCHEMA = object_schema(
    {
        "ledger_id": integer_schema(1),
        "version": integer_schema(1),
        "digest": digest_schema(),
    },
    title="LastServedVersion",
)
REPORT_SCHEMA = object_schema(
    {**REPORT_FIELDS, "key": KEY_SCHEMA, "client": TEXT_SCHEMA}, title="PromptReport"
)
REPORT_RESULT_SCHEMA = object_schema(
    {
        **REPORT_FIELDS,
        "versions": array_schema(
            integer_schema(1), most=100_000, description=("Version numbers, newest first.")
        ),
        "labels": array_schema(
            TEXT_SCHEMA, description=("Labels that currently point to one of these versions.")
        ),
        "last_served": nullable_schema(LAST_SERVED_SCHEMA),
    },
    title="PromptReportResult",
)
REPORT_REQUEST_SCHEMA = object_schema(
    {
        "agent": slug_schema(),
        "channel": slug_schema(),
        "digest": digest_schema(description="Digest of the version, of its text, or of the served text."),
        "ledger_id": integer_schema(1, description="The ledger entry of the fetch."),
        "request_id": line_schema(64),
        "path": line_schema(400, description="The file that was loaded."),
        "reason": line_schema(40, description="Why it was loaded, for example `session_start`."),
        "session": line_schema(128, description="The session of the bot."),
        "text": {
            "type": "string",
            "maxLength": MAX_TEXT_LENGTH,
            "description": "The loaded text, to find the lines that differ. It is compared, not stored.",
        },
        "skills": array_schema(
            object_schema(
                {
                    "name": line_schema(255, least=1),
                    "digest": digest_schema(description="SHA-256 of the SKILL.md."),
                },
                required=["name", "digest"],
                title="LoadedSkillInput",
            ),
            most=MAX_SKILLS,
            description="The skill files that were pulled, all of them. A skill that the released version "
            "offers and that is not listed counts as outdated.",
        ),
    },
    required=["agent", "channel", "digest"],
    title="PromptReportInput",
)
LIST_PARAMETERS = {
    "agent": slug_schema(),
    "channel": slug_schema(),
    "is_known_version": boolean_schema(),
    **PAGINATION_PARAMS,
}


def create_digest_report(call: ApiRequest) -> ApiResponse:
    body = call.body
    prompt = (
        list_visible_prompts(call.caller)
        .filter(agent__slug=body["agent"], channel__slug=body["channel"])
        .first()
    )
    if prompt is None:
        raise ProblemError(validation_problem([FieldError("Prompt not found.", "/agent")]))
    result = report_digest(
        prompt,
        body["digest"],
        key=call.caller.key,
        by=call.actor,
        ledger_id=body.get("ledger_id"),
        request_id=body.get("request_id", ""),
        loaded=LoadedFile(
            path=body.get("path", ""),
            reason=body.get("reason", ""),
            session=body.get("session", ""),
            text=body.get("text"),
            skills={skill["name"]: skill["digest"] for skill in body["skills"]} if "skills" in body else None,
        ),
    )
    return json_response(report_result_json(call.caller, result), 201)


def index(call: ApiRequest) -> ApiResponse:
    rows = DigestReport.objects.in_workspace(call.workspace).select_related(
        "key", "prompt__agent", "prompt__channel"
    )
    for name in ("agent", "channel"):
        if name in call.query:
            rows = rows.filter(**{f"prompt__{name}__slug": call.query[name]})
    if "is_known_version" in call.query:
        rows = rows.filter(version__isnull=not call.query["is_known_version"])
    if is_scope_limited(call.caller):
        rows = rows.filter(prompt__in=list_visible_prompt_ids(call.caller))
    rows = rows.filter(key=call.caller.key) if call.caller.is_bot else rows
    page = paginate_rows(
        rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""), newest_first=True
    )
    return page_response(call, page, [digest_report_json(call.caller, row) for row in page.rows])


def report_fields_json(caller: ApiClient, row: DigestReport, details: ReportDetails) -> dict[str, Any]:
    return {
        "id": row.pk,
        "agent": row.prompt.agent.slug,
        "channel": row.prompt.channel.slug,
        "digest": row.digest,
        "is_known_version": row.version_id is not None,
        "is_last_served": row.is_last_served,
        "ledger_id": row.ledger_id,
        "request_id": row.request_id,
        "status": details.status or None,
        **report_details_fields_json(caller, details),
        "created_at": datetime_json(row.at),
    }


def report_details_fields_json(caller: ApiClient, details: ReportDetails) -> dict[str, Any]:
    """Serialize what was loaded. Bots get the changed lines only of a text that they were served.

    The lines of another text would tell a bot which of them it has guessed.
    """
    changes = details.changes
    is_visible = changes is not None and (not caller.is_bot or changes.ledger_id is not None)
    return {
        "path": details.path,
        "reason": details.reason,
        "session": details.session,
        "changed_lines": changed_lines_json(changes) if changes and is_visible else None,
        "skills": None if details.skills is None else [skill._asdict() for skill in details.skills],
    }


def changed_lines_json(changes: LineChanges) -> dict[str, Any]:
    return {
        "version": changes.number,
        "ledger_id": changes.ledger_id,
        "blocks": [block._asdict() for block in changes.blocks],
        "more_blocks": changes.more,
    }


def digest_report_json(caller: ApiClient, row: DigestReport) -> dict[str, Any]:
    return {
        **report_fields_json(caller, row, parse_report_details(row.details)),
        "key": {"id": row.key.pk, "name": row.key.name},
        "client": row.client_label,
    }


def report_result_json(caller: ApiClient, result: DigestReportResult) -> dict[str, Any]:
    return {
        **report_fields_json(caller, result.report, result.details),
        "versions": result.versions,
        "labels": [label for label in result.labels if can_see_label(caller, label)],
        "last_served": result.last_served and result.last_served._asdict(),
    }


urlpatterns: list[URLPattern] = [
    endpoint(
        "prompts:report",
        "prompts-report",
        post=Operation(
            create_digest_report,
            "Report which prompt was used",
            operation_id="reportPromptUse",
            permission=Permission.EDIT,
            bots=True,
            touches=Touches.REPORT,
            body=REPORT_REQUEST_SCHEMA,
            answer=REPORT_RESULT_SCHEMA,
            status=201,
            is_addressable=False,
            is_retryable=True,
            tag="reports",
        ),
    ),
    endpoint(
        "reports",
        "reports-list",
        get=Operation(
            index,
            "List reports of used prompts, newest first",
            operation_id="listPromptReports",
            bots=True,
            touches=Touches.REPORT,
            answer=page_schema(REPORT_SCHEMA),
            query=LIST_PARAMETERS,
            tag="reports",
        ),
    ),
]
