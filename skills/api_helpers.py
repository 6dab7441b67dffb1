"""What the addresses of this app share: who may ask, how rows are found, lists that come whole."""

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from django.http import Http404

from personas.api.exception_handler import validation_problem
from personas.api.operations import ApiRequest
from personas.api.problems import FieldError, Problem, ProblemError
from personas.api.responses import ApiResponse, encode_json, json_response
from personas.api.schema import Schema, array_schema, integer_schema, object_schema
from personas.models import Agent, Workspace
from personas.selectors import list_agents
from skills.skill_format.parser import SkillProblem
from skills.sources.readers import get_readers_by_agent

M = TypeVar("M", bound=Model)
TEXT_SCHEMA: Schema = {"type": "string"}
# Nobody should meet a refused text by reading why it was refused, so excerpts stay on the pages.
FINDING_SCHEMA = object_schema(
    {
        "rule": TEXT_SCHEMA,
        "severity": TEXT_SCHEMA,
        "line": integer_schema(),
        "column": integer_schema(),
        "message": TEXT_SCHEMA,
    }
)
PROBLEM_SCHEMA = object_schema({"field": TEXT_SCHEMA, "line": integer_schema(), "message": TEXT_SCHEMA})
FINDINGS_SCHEMA, PROBLEMS_SCHEMA = (
    array_schema(FINDING_SCHEMA, most=100_000),
    array_schema(PROBLEM_SCHEMA, most=100_000),
)
ETAG_PATTERN = re.compile(r'(?:W/)?("[^"]*")')


def require_unrestricted_key(call: ApiRequest) -> None:
    """What several agents share is not changed with a key that is limited to some of them."""
    if call.caller.agents is not None:
        said = "This key is limited to some agents; what others share is not changed with it."
        raise ProblemError(Problem(403, "out_of_scope", said))


def row_or_404(rows: QuerySet[M], key: int, *, below: int = 2**63) -> M:
    found = rows.filter(pk=key).first() if 0 < key < below else None
    if found is None:
        raise Http404
    return found


def agent_or_404(call: ApiRequest, slug: str, *, is_live: bool = False) -> Agent:
    """An agent this key may know of."""
    rows = list_agents(call.workspace).prefetch_related(None).filter(slug=slug)
    found = (rows.filter(archived_at=None) if is_live else rows).first()
    if found is None or not call.caller.can_access_agent(slug):
        raise Http404
    return found


def get_agents_by_slug(call: ApiRequest, slugs: list[str], field: str) -> list[Agent]:
    """The agents in the order they were named; one that is not here is said of the field."""
    rows = Agent.objects.in_workspace(call.workspace).filter(archived_at=None, slug__in=slugs)
    found = {row.slug: row for row in rows if call.caller.can_access_agent(row.slug)}
    if set(slugs) - set(found):
        raise ProblemError(validation_problem([FieldError("There is no such record here.", f"/{field}")]))
    return [found[slug] for slug in slugs]


def get_readable_source_ids(workspace: Workspace, agents: Iterable[str]) -> set[int]:
    """The ids of the sources that these agents read, by their own choice or their parents'."""
    named = set(agents)
    found = get_readers_by_agent(workspace).values()
    return {one.source.pk for one in found if one.agent.slug in named and not one.agent.is_archived}


def unpaginated_response(rows: list[dict[str, Any]]) -> ApiResponse:
    """A list that is never long, in the form of those that are."""
    return json_response({"data": rows, "next_cursor": None, "has_more": False})


def conditional_response(call: ApiRequest, value: Any) -> ApiResponse:
    """The value with the digest of its bytes as its mark; 304 for whoever has it already."""
    etag = f'"{sha256(encode_json(value)).hexdigest()}"'
    headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
    seen = call.headers.get("If-None-Match", "")
    if seen.strip() == "*" or etag in ETAG_PATTERN.findall(seen):
        return ApiResponse(304, headers=headers)
    return ApiResponse(200, encode_json(value), headers)


NOT_MODIFIED: tuple[int, Mapping[str, Any]] = (304, {"description": "You have it already."})


def findings_json(findings: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{name: one[name] for name in FINDING_SCHEMA["properties"]} for one in findings]


def problems_json(problems: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{name: one[name] for name in PROBLEM_SCHEMA["properties"]} for one in problems]


def skill_problem_json(problem: SkillProblem) -> dict[str, Any]:
    return {"field": problem.field, "line": problem.line, "message": problem.message}
