"""Helpers for the API resources of this app: key checks, lookups with 404, ETag responses, shared schemas."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from django.http import Http404

from personas.api.exception_handler import missing_verb_problem, validation_problem
from personas.api.operations import ApiRequest
from personas.api.problems import FieldError, Problem, ProblemError
from personas.api.schema import Schema, array_schema, integer_schema, object_schema
from personas.api_keys.scopes import WRITE
from personas.models import Agent, Workspace
from personas.roles import Permission
from personas.selectors import list_agents
from skills.models import AssignedTo, ContextFile, FileAgent, Source
from skills.skill_format.parser import SkillProblem
from skills.sources.readers import get_readers_by_agent

M = TypeVar("M", bound=Model)
TEXT_SCHEMA: Schema = {"type": "string"}
# The excerpts of findings are left out, because API clients must not receive quarantined text.
FINDING_SCHEMA = object_schema(
    {
        "rule": TEXT_SCHEMA,
        "severity": TEXT_SCHEMA,
        "line": integer_schema(),
        "column": integer_schema(),
        "message": TEXT_SCHEMA,
    },
    title="Finding",
)
PROBLEM_SCHEMA = object_schema(
    {"field": TEXT_SCHEMA, "line": integer_schema(), "message": TEXT_SCHEMA}, title="FileProblem"
)
FINDINGS_SCHEMA, PROBLEMS_SCHEMA = (
    array_schema(FINDING_SCHEMA, most=100_000),
    array_schema(PROBLEM_SCHEMA, most=100_000),
)
ETAG_PATTERN = re.compile(r'(?:W/)?("[^"]*")')


def require_own_source(call: ApiRequest, source: Source) -> None:
    """Answer 403 if the API key is limited to some agents and the files of the source reach others too."""
    if call.caller.agents is None:
        return
    readers = get_readers_by_agent(call.workspace).values()
    slugs = {reader.agent.slug for reader in readers if source.pk in reader.source_ids}
    files = ContextFile.objects.in_workspace(call.workspace).filter(source=source, file_kind="skill")
    links = FileAgent.objects.in_workspace(call.workspace).filter(file__source=source)
    slugs |= set(links.values_list("agent__slug", flat=True))
    if slugs - set(call.caller.agents) or files.filter(assigned_to=AssignedTo.ALL).exists():
        message = "This key is limited to specific agents, and other agents use the files of this source."
        raise ProblemError(Problem(403, "out_of_scope", message))


def require_write_verb(call: ApiRequest) -> None:
    """Answer 403 if the key cannot approve files: what lifts the approval of files needs the same verb."""
    if Permission.EDIT not in call.caller.permissions:
        raise ProblemError(missing_verb_problem(WRITE))


def row_or_404(rows: QuerySet[M], key: int, *, below: int = 2**63) -> M:
    row = rows.filter(pk=key).first() if 0 < key < below else None
    if row is None:
        raise Http404
    return row


def agent_or_404(call: ApiRequest, slug: str, *, is_active: bool = False) -> Agent:
    """Return the agent with this slug, or raise Http404 if it does not exist or the API key has no access.

    With `is_active`, an archived agent raises Http404, too.
    """
    rows = list_agents(call.workspace).prefetch_related(None).filter(slug=slug)
    agent = (rows.filter(archived_at=None) if is_active else rows).first()
    if agent is None or not call.caller.can_access_agent(slug):
        raise Http404
    return agent


def get_agents_by_slug(call: ApiRequest, slugs: list[str], field: str) -> list[Agent]:
    """Return the agents with these slugs, in the same order.

    An unknown slug raises a validation problem for `field`, the request field with the slugs.
    """
    rows = Agent.objects.in_workspace(call.workspace).filter(archived_at=None, slug__in=slugs)
    agents = {row.slug: row for row in rows if call.caller.can_access_agent(row.slug)}
    if set(slugs) - set(agents):
        raise ProblemError(validation_problem([FieldError("Record not found.", f"/{field}")]))
    return [agents[slug] for slug in slugs]


def get_readable_source_ids(workspace: Workspace, agents: Iterable[str]) -> set[int]:
    """Return the ids of the sources that the agents with these slugs read, including inherited sources."""
    slugs = set(agents)
    readers = get_readers_by_agent(workspace).values()
    return {
        source_id
        for reader in readers
        if reader.agent.slug in slugs and not reader.agent.is_archived
        for source_id in reader.source_ids
    }


def findings_json(findings: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{name: finding[name] for name in FINDING_SCHEMA["properties"]} for finding in findings]


def problems_json(problems: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{name: problem[name] for name in PROBLEM_SCHEMA["properties"]} for problem in problems]


def skill_problem_json(problem: SkillProblem) -> dict[str, Any]:
    return {"field": problem.field, "line": problem.line, "message": problem.message}
