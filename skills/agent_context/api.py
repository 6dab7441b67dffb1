"""API for an agent's context: sources, rules, settings, and the effective, withheld and pending files."""

from collections.abc import Iterable
from hashlib import sha256
from typing import Any

from django.db import transaction
from django.urls import URLPattern

from personas.api.etags import NOT_MODIFIED_RESPONSES, check_etag
from personas.api.exception_handler import validation_problem
from personas.api.key_limits import Touches, out_of_scope_error
from personas.api.operations import ApiRequest, Operation
from personas.api.problems import FieldError, ProblemError
from personas.api.responses import ApiResponse, encode_json, json_response, no_content_response
from personas.api.schema import (
    ABSOLUTE_PATH_FORMAT,
    FILE_NAME_FORMAT,
    FOLDER_FORMAT,
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
from skills.agent_context.page import (
    ContextChoice,
    get_context_and_pending,
    get_context_choice,
    request_context_refresh,
)
from skills.agent_context.services import (
    MAX_NAMES,
    MAX_SOURCES,
    SETTING_NAMES,
    ContextSettings,
    SourceUse,
    choose_context,
    context_choice_json,
    inherit_context,
)
from skills.api_helpers import TEXT_SCHEMA, agent_or_404, get_readable_source_ids
from skills.discovery.harnesses import FILE_KINDS, HARNESSES
from skills.models import (
    AgentContext,
    AgentSource,
    ContextFile,
    FileRevision,
    FileStatus,
    Source,
    SourceScope,
)
from skills.sources.api import SourceResource
from skills.sources.readers import list_context_rows

MAX_ITEMS = 100_000
EFFECTIVE_FILE_SCHEMA = object_schema(
    {
        "id": integer_schema(1),
        "path": TEXT_SCHEMA,
        "bot_path": TEXT_SCHEMA | {"description": "The path shown in prompts."},
        "kind": enum_schema(FILE_KINDS, title="FileKind"),
        "revision": integer_schema(1),
        "digest": TEXT_SCHEMA,
    },
    title="EffectiveFile",
)
WITHHELD_FILES_SCHEMA = array_schema(
    object_schema(
        {
            "id": integer_schema(1),
            "path": TEXT_SCHEMA,
            "status": enum_schema(FileStatus.values, title="FileStatus"),
        },
        title="UnusedFile",
    ),
    most=MAX_ITEMS,
)
AGENT_CONTEXT_SCHEMA: Schema = object_schema(
    {
        "agent": TEXT_SCHEMA,
        "source": nullable_schema(
            TEXT_SCHEMA | {"description": "The last of its sources. It has the highest priority."}
        ),
        "sources": array_schema(
            object_schema(
                {
                    "source": TEXT_SCHEMA,
                    "scope": enum_schema(SourceScope.values, title="SourceScope"),
                    "location": TEXT_SCHEMA
                    | {"description": ("Set on the agent. If empty, the location of the source applies.")},
                    "effective_location": TEXT_SCHEMA
                    | {
                        "description": (
                            "Path of its root on the machine of the agent's bots. Empty if unknown."
                        )
                    },
                },
                title="SourceUse",
            ),
            most=MAX_SOURCES,
            description="In reading order, lowest priority first.",
        ),
        "harness": nullable_schema(TEXT_SCHEMA),
        "has_context_files": boolean_schema(),
        "has_skills": boolean_schema(),
        "file_names": array_schema(TEXT_SCHEMA, most=MAX_NAMES),
        "extra_skill_folders": array_schema(TEXT_SCHEMA, most=MAX_NAMES),
        "extra_skill_folders_problem": TEXT_SCHEMA
        | {"description": "Which of these folders are in none of its sources. Empty if all are."},
        "pulled_skills_folder": TEXT_SCHEMA,
        "bot_directory": TEXT_SCHEMA
        | {"description": "The working directory on the bot's machine. Empty if unknown."},
        "working_directory": TEXT_SCHEMA,
        "working_directory_problem": TEXT_SCHEMA
        | {
            "description": (
                "Why the root is used instead of the working directory. Empty if the "
                "working directory is used."
            )
        },
        "chosen_by": nullable_schema(
            TEXT_SCHEMA
            | {"description": ("The agent that has these settings: the agent itself, or a parent.")}
        ),
        "is_inherited": boolean_schema(),
        "empty_reason": TEXT_SCHEMA | {"description": "Why it reads no files. Empty if it does."},
        "files": array_schema(
            EFFECTIVE_FILE_SCHEMA,
            most=MAX_ITEMS,
            description=("Files that its prompts contain, without skills."),
        ),
        "withheld": WITHHELD_FILES_SCHEMA | {"description": "Files that match its rules but are invalid."},
        "needs_review": WITHHELD_FILES_SCHEMA | {"description": "Files that it would read after approval."},
        "etag": TEXT_SCHEMA,
    },
    title="AgentContext",
)
SOURCE_USE_SCHEMA = object_schema(
    {
        "source": slug_schema(),
        "scope": enum_schema(
            SourceScope.values,
            default=str(SourceScope.BOTH),
            description="Which files are read: the home directory, the project, or both.",
            title="SourceScope",
        ),
        "location": line_schema(
            1_000,
            format=ABSOLUTE_PATH_FORMAT,
            description="Its root on the machine of the agent's bots. Default: the location of the source.",
        ),
    },
    required=["source"],
    title="SourceUseInput",
)
CONTEXT_CHOICE_SCHEMA = object_schema(
    {
        "source": nullable_schema(
            slug_schema(
                description="One source, read as project and as home directory. Null: the agent "
                "reads nothing and inherits nothing. Omit it if you send `sources`."
            )
        ),
        "sources": array_schema(
            SOURCE_USE_SCHEMA,
            most=MAX_SOURCES,
            description=(
                "Lowest priority first, for example home before project. If empty, the agent reads nothing."
            ),
        ),
        "harness": enum_schema(HARNESSES, title="Harness"),
        "working_directory": line_schema(
            1_000,
            description="A path below the root or ~/, or absolute. Omit it to keep the current value.",
        ),
        "has_context_files": boolean_schema(
            description=(
                "Whether prompts contain context files. Omit it to keep the current value; initially true."
            )
        ),
        "has_skills": boolean_schema(
            description="Whether prompts list skills. Omit it to keep the current value; initially true."
        ),
        "file_names": array_schema(
            line_schema(500, least=1, format=FILE_NAME_FORMAT),
            most=MAX_NAMES,
            description=(
                "Names of context files. If empty, the names of the rule set apply. Omit it "
                "to keep the current value."
            ),
        ),
        "extra_skill_folders": array_schema(
            line_schema(500, least=1, format=FOLDER_FORMAT),
            most=MAX_NAMES,
            description="More skill folders. Omit it to keep the current value.",
        ),
        "pulled_skills_folder": line_schema(
            1_000,
            format=ABSOLUTE_PATH_FORMAT,
            description="The folder that `dramatis pull` writes to. If empty, "
            "prompts contain the URLs of skill records. Omit it to keep the current "
            "value.",
        ),
    },
    required=["harness"],
    title="AgentContextInput",
    **{
        "if": {"required": ["source"]},
        "then": {"properties": {"sources": False}},
        "else": {"required": ["sources"]},
    },
)
WRITE_OPTIONS: dict[str, Any] = {
    "permission": Permission.EDIT,
    "touches": Touches.AGENT,
    "is_conditional": True,
    "tag": "agents",
}


def retrieve_agent_context(call: ApiRequest, agent: str) -> ApiResponse:
    return agent_context_response(agent_or_404(call, agent))


@transaction.atomic
def update_agent_context(call: ApiRequest, agent: str) -> ApiResponse:
    row = lock_agent_if_match(call, agent)
    body: dict[str, Any] = call.body
    own = list_context_rows(call.workspace).filter(agent=row).first() or AgentContext()
    saved = choose_context(
        row,
        list_requested_uses(call, body),
        body["harness"],
        working_directory=body.get("working_directory", row.working_directory),
        expected=row.revision,
        by=call.actor,
        settings=ContextSettings(**{name: body.get(name, getattr(own, name)) for name in SETTING_NAMES}),
    )
    request_context_refresh(saved, by=call.actor)
    return agent_context_response(agent_or_404(call, agent))


@transaction.atomic
def delete_agent_context(call: ApiRequest, agent: str) -> ApiResponse:
    """Remove the choice of an agent. A limited key must not let it inherit sources outside of the limits."""
    row, limits = lock_agent_if_match(call, agent), call.caller.agents
    before = None if limits is None else get_readable_source_ids(call.workspace, limits)
    inherit_context(row, by=call.actor)
    if before is not None and get_readable_source_ids(call.workspace, limits or ()) - before:
        raise out_of_scope_error()
    return no_content_response()


# --- helpers -------------------------------------------------------------------------------------------


def lock_agent_if_match(call: ApiRequest, slug: str) -> Agent:
    """Lock the agent's row, then check the request's If-Match header against the current ETag."""
    agent = lock_record(agent_or_404(call, slug))
    check_etag(context_etag(agent, get_context_choice(agent)), call.if_match)
    return agent


def list_requested_uses(call: ApiRequest, body: dict[str, Any]) -> list[SourceUse]:
    """Return the sources in the request's body: `sources`, or the shorter form `source`."""
    if ("source" in body) == ("sources" in body):
        raise ProblemError(
            validation_problem([FieldError("Send either `source` or `sources`, not both.", "/sources")])
        )
    if "source" in body:
        slug = body["source"]
        return [] if slug is None else [SourceUse(get_source_by_slug(call, slug, "/source"))]
    return [
        SourceUse(
            get_source_by_slug(call, use["source"], f"/sources/{index}/source"),
            use.get("scope", SourceScope.BOTH),
            use.get("location", ""),
        )
        for index, use in enumerate(body["sources"])
    ]


def get_source_by_slug(call: ApiRequest, slug: str, pointer: str) -> Source:
    source: Source | None = (
        SourceResource().list_visible(call.caller).filter(slug=slug, archived_at=None).first()
    )
    if source is None:
        raise ProblemError(validation_problem([FieldError("Record not found.", pointer)]))
    return source


def context_etag(agent: Agent, choice: ContextChoice) -> str:
    """Return the ETag of an agent's context.

    It contains a hash of the chosen sources and settings in addition to the agent's revision number, because
    choosing them does not change the revision number.
    """
    chooser, row = choice.chosen_by, choice.row
    chosen = sha256(encode_json(context_choice_json(row))).hexdigest()[:16] if row else ""
    return f'"{agent.revision}.{chooser.slug if chooser else ""}.{chosen}"'


def agent_context_response(agent: Agent) -> ApiResponse:
    choice = get_context_choice(agent)
    etag = context_etag(agent, choice)
    return json_response(agent_context_json(agent, choice) | {"etag": etag}, ETag=etag)


def agent_context_json(agent: Agent, choice: ContextChoice) -> dict[str, Any]:
    effective, pending = get_context_and_pending(agent)
    row, chooser = choice.row, choice.chosen_by
    uses = list(row.uses.all()) if row else []
    return {
        "agent": agent.slug,
        "source": uses[-1].source.slug if uses else None,
        "sources": [source_use_json(use) for use in uses],
        "harness": row.harness if row else None,
        **{name: getattr(row or AgentContext(), name) for name in SETTING_NAMES},
        "bot_directory": effective.bot_directory,
        "working_directory": choice.directory,
        "working_directory_problem": effective.reader.directory_problem if effective.reader else "",
        "extra_skill_folders_problem": effective.reader.skill_folders_problem if effective.reader else "",
        "chosen_by": chooser.slug if chooser else None,
        "is_inherited": chooser is not None and chooser.pk != agent.pk,
        "empty_reason": "" if effective.reader else choice.no_files_reason,
        "files": [
            effective_file_json(entry, revision)
            for entry in effective.files
            if (revision := entry.file.active)
        ],
        "withheld": withheld_files_json(effective.withheld),
        "needs_review": withheld_files_json(pending),
    }


def source_use_json(use: AgentSource) -> dict[str, Any]:
    return {
        "source": use.source.slug,
        "scope": use.scope,
        "location": use.location,
        "effective_location": use.bot_location,
    }


def effective_file_json(entry: EffectiveFile, revision: FileRevision) -> dict[str, Any]:
    return {
        "id": entry.file.pk,
        "path": entry.file.path,
        "bot_path": entry.bot_path,
        "kind": entry.kind,
        "revision": revision.number,
        "digest": revision.digest,
    }


def withheld_files_json(files: Iterable[ContextFile]) -> list[dict[str, Any]]:
    return [{"id": file.pk, "path": file.path, "status": file.status} for file in files]


urlpatterns: list[URLPattern] = [
    endpoint(
        "agents/<slug:agent>/context",
        "agent-context",
        get=Operation(
            retrieve_agent_context,
            "Get the context settings of an agent",
            operation_id="getAgentContext",
            extra_responses=NOT_MODIFIED_RESPONSES,
            touches=Touches.AGENT,
            answer=AGENT_CONTEXT_SCHEMA,
            tag="agents",
        ),
        put=Operation(
            update_agent_context,
            "Replace the context settings of an agent",
            operation_id="replaceAgentContext",
            body=CONTEXT_CHOICE_SCHEMA,
            answer=AGENT_CONTEXT_SCHEMA,
            **WRITE_OPTIONS,
        ),
        delete=Operation(
            delete_agent_context,
            "Delete the context settings of an agent",
            operation_id="deleteAgentContext",
            status=204,
            **WRITE_OPTIONS,
        ),
    ),
]
