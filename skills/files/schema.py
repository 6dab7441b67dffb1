"""JSON schemas and serializers for context files, revisions and waivers."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any

from django.db.models import Q, QuerySet

from personas.api.authentication import ApiClient
from personas.api.operations import ApiRequest
from personas.api.responses import datetime_json
from personas.api.schema import (
    Schema,
    array_schema,
    boolean_schema,
    datetime_schema,
    enum_schema,
    integer_schema,
    nullable_schema,
    object_schema,
)
from skills.api_helpers import (
    FINDINGS_SCHEMA,
    PROBLEMS_SCHEMA,
    TEXT_SCHEMA,
    findings_json,
    get_readable_source_ids,
    problems_json,
)
from skills.discovery.harnesses import FILE_KINDS
from skills.files.prompt_usage import describe_usages
from skills.files.reasons import list_status_reasons
from skills.files.selectors import (
    get_revision_text,
    get_seen_digest,
    list_agents_by_id,
    list_waivers,
    needs_review,
)
from skills.files.status_changes import list_reader_ids
from skills.models import AssignedTo, ContextFile, FileAgent, FileRevision, FileStatus, Verdict, Waiver

MAX_ITEMS = 100_000
REVISION_SUMMARY_SCHEMA = object_schema(
    {
        "revision": integer_schema(1),
        "digest": TEXT_SCHEMA,
        "size": integer_schema(),
        "verdict": enum_schema(Verdict.values, title="Verdict"),
    },
    title="FileRevisionSummary",
)
SEEN_DIGEST_SCHEMA = TEXT_SCHEMA | {
    "description": "The digest to send with `:approve`; empty if the file is missing."
}
MASKED_SCHEMA = boolean_schema(description="Whether `text` contains secrets. They are masked with •••.")
FILE_PROPERTIES: dict[str, Schema] = {
    "id": integer_schema(1),
    "source": TEXT_SCHEMA,
    "path": TEXT_SCHEMA,
    "kind": enum_schema(FILE_KINDS, title="FileKind"),
    "name": TEXT_SCHEMA | {"description": "For skills."},
    "status": enum_schema(FileStatus.values, title="FileStatus"),
    "reasons": array_schema(TEXT_SCHEMA, most=MAX_ITEMS, description="Why it has this status."),
    "status_text": TEXT_SCHEMA | {"description": "What prompts currently contain."},
    "exists": boolean_schema(description="Whether the last refresh run found the file."),
    "is_ignored": boolean_schema(),
    "needs_review": boolean_schema(description="Whether it is in the inbox and needs review."),
    "latest": nullable_schema(REVISION_SUMMARY_SCHEMA),
    "approved": nullable_schema(REVISION_SUMMARY_SCHEMA),
    "active": nullable_schema(REVISION_SUMMARY_SCHEMA) | {"description": "The revision that prompts use."},
    "seen_digest": SEEN_DIGEST_SCHEMA,
    "first_seen_at": datetime_schema(),
    "changed_at": datetime_schema(),
}
WAIVER_SCHEMA = object_schema(
    {
        "id": integer_schema(1),
        "digest": TEXT_SCHEMA,
        "reason": TEXT_SCHEMA,
        "until": {"type": "string", "format": "date"},
        "author": TEXT_SCHEMA,
        "created_at": datetime_schema(),
        "ended_at": nullable_schema(datetime_schema()),
    },
    title="Waiver",
)
FILE_SCHEMA = object_schema(FILE_PROPERTIES, title="ContextFile")
FILE_DETAIL_SCHEMA = object_schema(
    {
        **FILE_PROPERTIES,
        "text": nullable_schema(
            TEXT_SCHEMA | {"description": "The text of the active revision; null if there is none."}
        ),
        "is_masked": MASKED_SCHEMA,
        "findings": FINDINGS_SCHEMA,
        "problems": PROBLEMS_SCHEMA,
        "agents": array_schema(TEXT_SCHEMA, most=MAX_ITEMS, description="Slugs of the agents that get it."),
        "waivers": array_schema(WAIVER_SCHEMA, most=MAX_ITEMS),
    },
    title="ContextFileDetail",
)
REVISION_PROPERTIES: dict[str, Schema] = {
    "revision": integer_schema(1),
    "digest": TEXT_SCHEMA,
    "size": integer_schema(),
    "verdict": enum_schema(Verdict.values, title="Verdict"),
    "findings": FINDINGS_SCHEMA,
    "problems": PROBLEMS_SCHEMA,
    "is_erased": boolean_schema(),
    "first_seen_at": datetime_schema(),
    "last_seen_at": nullable_schema(datetime_schema()),
}
REVISION_SCHEMA = object_schema(REVISION_PROPERTIES, title="FileRevision")
REVISION_DETAIL_SCHEMA = object_schema(
    {**REVISION_PROPERTIES, "text": nullable_schema(TEXT_SCHEMA), "is_masked": MASKED_SCHEMA},
    title="FileRevisionDetail",
)


def context_files_json(files: Collection[ContextFile]) -> list[dict[str, Any]]:
    usages = describe_usages(files)
    return [context_file_json(file, usages[file.pk]) for file in files]


def context_file_json(file: ContextFile, usage: str) -> dict[str, Any]:
    return {
        "id": file.pk,
        "source": file.source.slug,
        "path": file.path,
        "kind": file.file_kind,
        "name": file.name,
        "status": file.status,
        "reasons": list_status_reasons(file),
        "status_text": usage,
        "exists": file.exists,
        "is_ignored": file.is_ignored,
        "needs_review": needs_review(file),
        "latest": revision_summary_json(file.latest),
        "approved": revision_summary_json(file.approved),
        "active": revision_summary_json(file.active),
        "seen_digest": get_seen_digest(file),
        "first_seen_at": datetime_json(file.first_seen_at),
        "changed_at": datetime_json(file.changed_at),
    }


def context_file_detail_json(call: ApiRequest, file: ContextFile) -> dict[str, Any]:
    """Serialize a file with the findings of its latest revision and the text of its active revision."""
    latest, revision_text = file.latest, get_revision_text(file.active) if file.active else None
    readers = list_agents_by_id(call.workspace, list_reader_ids(file.source, [file]))
    return context_files_json([file])[0] | {
        "text": revision_text.text if revision_text and not revision_text.is_erased else None,
        "is_masked": bool(revision_text and revision_text.is_masked),
        "findings": findings_json(latest.findings) if latest else [],
        "problems": problems_json(latest.problems) if latest else [],
        "agents": [agent.slug for agent in readers if call.caller.can_access_agent(agent.slug)],
        "waivers": [waiver_json(waiver) for waiver in list_waivers(file)],
    }


def revision_summary_json(revision: FileRevision | None) -> dict[str, Any] | None:
    if revision is None:
        return None
    return {
        "revision": revision.number,
        "digest": revision.digest,
        "size": revision.size,
        "verdict": revision.verdict,
    }


def file_revision_json(row: FileRevision) -> dict[str, Any]:
    return {
        "revision": row.number,
        "digest": row.digest,
        "size": row.size,
        "verdict": row.verdict,
        "findings": findings_json(row.findings),
        "problems": problems_json(row.problems),
        "is_erased": row.content.erased_at is not None,
        "first_seen_at": datetime_json(row.first_seen_at),
        "last_seen_at": row.last_seen_at and datetime_json(row.last_seen_at),
    }


def waiver_json(waiver: Waiver) -> dict[str, Any]:
    return {
        "id": waiver.pk,
        "digest": waiver.digest,
        "reason": waiver.reason,
        "until": waiver.until.isoformat(),
        "author": waiver.author_label,
        "created_at": datetime_json(waiver.created_at),
        "ended_at": waiver.ended_at and datetime_json(waiver.ended_at),
    }


def filter_visible_files(caller: ApiClient, rows: QuerySet[ContextFile]) -> QuerySet[ContextFile]:
    """Limit the rows to the files that the API key may see.

    A key that is limited to some agents sees the files of the sources that these agents read, and the skills
    that are assigned to these agents. It does not see skills that are assigned only to other agents.
    """
    if caller.agents is None:
        return rows
    links = FileAgent.objects.in_workspace(caller.workspace).filter(agent__slug__in=caller.agents)
    in_readable_source = Q(source__in=get_readable_source_ids(caller.workspace, caller.agents)) & ~Q(
        assigned_to=AssignedTo.SELECTED
    )
    assigned = Q(file_kind="skill", assigned_to=AssignedTo.ALL) | Q(
        assigned_to=AssignedTo.SELECTED, pk__in=links.values("file")
    )
    return rows.filter(in_readable_source | assigned)


def list_assigned_slugs(caller: ApiClient, files: Iterable[ContextFile]) -> dict[int, list[str]]:
    """Return, by file id, the slugs of the agents that the file is assigned to, with one query.

    Agents that the API key may not access are left out.
    """
    links = FileAgent.objects.in_workspace(caller.workspace).filter(file__in=[file.pk for file in files])
    slugs: dict[int, list[str]] = defaultdict(list)
    for file_id, slug in links.order_by("agent__slug").values_list("file_id", "agent__slug"):
        if caller.can_access_agent(slug):
            slugs[file_id].append(slug)
    return slugs
