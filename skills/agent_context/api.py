"""API for an agent's context: its source and harness, and the effective, withheld and pending files."""

from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.urls import URLPattern

from personas.api.etags import check_etag
from personas.api.exception_handler import validation_problem
from personas.api.operations import ApiRequest, Operation
from personas.api.problems import FieldError, ProblemError
from personas.api.responses import ApiResponse, json_response, no_content_response
from personas.api.schema import (
    Schema,
    array_schema,
    boolean_schema,
    enum_schema,
    integer_schema,
    line_schema,
    nullable_schema,
    object_schema,
    slug_schema,
)
from personas.api.views import endpoint
from personas.models import Agent
from personas.records.services import lock_record
from personas.roles import Permission
from skills.agent_context.effective import EffectiveFile
from skills.agent_context.page import ContextChoice, get_context_and_pending, get_context_choice
from skills.agent_context.services import choose_context, inherit_context
from skills.api_helpers import TEXT_SCHEMA, agent_or_404
from skills.discovery.harnesses import FILE_KINDS, HARNESSES
from skills.models import ContextFile, FileRevision, FileState, Source
from skills.sources.api import SourceResource

MAX_ITEMS = 100_000
EFFECTIVE_FILE_SCHEMA = object_schema(
    {
        "id": integer_schema(1),
        "path": TEXT_SCHEMA,
        "kind": enum_schema(FILE_KINDS),
        "revision": integer_schema(1),
        "digest": TEXT_SCHEMA,
    }
)
WITHHELD_FILES_SCHEMA = array_schema(
    object_schema({"id": integer_schema(1), "path": TEXT_SCHEMA, "state": enum_schema(FileState.values)}),
    most=MAX_ITEMS,
)
AGENT_CONTEXT_SCHEMA: Schema = object_schema(
    {
        "agent": TEXT_SCHEMA,
        "source": nullable_schema(TEXT_SCHEMA),
        "harness": nullable_schema(TEXT_SCHEMA),
        "working_directory": TEXT_SCHEMA,
        "working_directory_problem": TEXT_SCHEMA
        | {"description": "Why the working directory cannot be used, and the root is; empty if it can."},
        "chosen_by": nullable_schema(
            TEXT_SCHEMA | {"description": "The agent whose choice this is: itself, or one above."}
        ),
        "is_inherited": boolean_schema(),
        "why_nothing": TEXT_SCHEMA | {"description": "Why it reads no files; empty when it does."},
        "files": array_schema(
            EFFECTIVE_FILE_SCHEMA, most=MAX_ITEMS, description="What its prompts hold, skills aside."
        ),
        "withheld": WITHHELD_FILES_SCHEMA | {"description": "Named by its rules, but not as they should be."},
        "waiting": WITHHELD_FILES_SCHEMA | {"description": "What it would be given if someone agreed to it."},
        "etag": TEXT_SCHEMA,
    }
)
CONTEXT_CHOICE_SCHEMA = object_schema(
    {
        "source": nullable_schema(
            slug_schema(description="Null: it reads nothing, also not what its parent reads.")
        ),
        "harness": enum_schema(HARNESSES),
        "working_directory": line_schema(1_000, description="Below the source's root; absent: as it is."),
    },
    required=["source", "harness"],
)
WRITE_OPTIONS: dict[str, Any] = {"permission": Permission.EDIT, "is_conditional": True, "tag": "agents"}


def retrieve_agent_context(call: ApiRequest, agent: str) -> ApiResponse:
    return agent_context_response(agent_or_404(call, agent))


@transaction.atomic
def update_agent_context(call: ApiRequest, agent: str) -> ApiResponse:
    row = lock_agent_if_match(call, agent)
    body: dict[str, Any] = call.body
    choose_context(
        row,
        get_source_by_slug(call, body["source"]),
        body["harness"],
        working_directory=body.get("working_directory", row.working_directory),
        expected=row.revision,
        by=call.actor,
    )
    return agent_context_response(agent_or_404(call, agent))


@transaction.atomic
def delete_agent_context(call: ApiRequest, agent: str) -> ApiResponse:
    inherit_context(lock_agent_if_match(call, agent), by=call.actor)
    return no_content_response()


# --- helpers -------------------------------------------------------------------------------------------


def lock_agent_if_match(call: ApiRequest, slug: str) -> Agent:
    """Lock the agent's row, then check the request's If-Match header against the current ETag."""
    agent = lock_record(agent_or_404(call, slug))
    check_etag(context_etag(agent, get_context_choice(agent)), call.if_match)
    return agent


def get_source_by_slug(call: ApiRequest, slug: str | None) -> Source | None:
    if slug is None:
        return None
    source: Source | None = (
        SourceResource().list_visible(call.caller).filter(slug=slug, archived_at=None).first()
    )
    if source is None:
        raise ProblemError(validation_problem([FieldError("There is no such record here.", "/source")]))
    return source


def context_etag(agent: Agent, choice: ContextChoice) -> str:
    """Return the ETag of an agent's context.

    It contains the chosen source and harness in addition to the agent's revision number, because choosing
    them does not change the revision number.
    """
    chooser, row = choice.chosen_by, choice.row
    source = row.source.slug if row and row.source else ""
    return f'"{agent.revision}.{chooser.slug if chooser else ""}.{source}.{row.harness if row else ""}"'


def agent_context_response(agent: Agent) -> ApiResponse:
    choice = get_context_choice(agent)
    etag = context_etag(agent, choice)
    return json_response(agent_context_json(agent, choice) | {"etag": etag}, ETag=etag)


def agent_context_json(agent: Agent, choice: ContextChoice) -> dict[str, Any]:
    effective, pending = get_context_and_pending(agent)
    row, chooser = choice.row, choice.chosen_by
    return {
        "agent": agent.slug,
        "source": row.source.slug if row and row.source else None,
        "harness": row.harness if row else None,
        "working_directory": choice.directory,
        "working_directory_problem": effective.reader.directory_problem if effective.reader else "",
        "chosen_by": chooser.slug if chooser else None,
        "is_inherited": chooser is not None and chooser.pk != agent.pk,
        "why_nothing": "" if effective.reader else choice.no_files_reason,
        "files": [
            effective_file_json(entry, revision)
            for entry in effective.files
            if (revision := entry.file.in_force)
        ],
        "withheld": withheld_files_json(effective.withheld),
        "waiting": withheld_files_json(pending),
    }


def effective_file_json(entry: EffectiveFile, revision: FileRevision) -> dict[str, Any]:
    return {
        "id": entry.file.pk,
        "path": entry.file.path,
        "kind": entry.kind,
        "revision": revision.number,
        "digest": revision.digest,
    }


def withheld_files_json(files: Iterable[ContextFile]) -> list[dict[str, Any]]:
    return [{"id": file.pk, "path": file.path, "state": file.state} for file in files]


urlpatterns: list[URLPattern] = [
    endpoint(
        "agents/<slug:agent>/context",
        "agent-context",
        get=Operation(
            retrieve_agent_context,
            "What an agent reads, and from where",
            bots=True,
            answer=AGENT_CONTEXT_SCHEMA,
            tag="agents",
        ),
        put=Operation(
            update_agent_context,
            "Choose the source an agent reads",
            body=CONTEXT_CHOICE_SCHEMA,
            answer=AGENT_CONTEXT_SCHEMA,
            **WRITE_OPTIONS,
        ),
        delete=Operation(
            delete_agent_context,
            "Drop an agent's own choice: it reads what its parent reads",
            status=204,
            **WRITE_OPTIONS,
        ),
    ),
]
