"""What the addresses of this app share: who may ask, how rows are found, lists that come whole."""

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from django.http import Http404

from personas.api.exception_handler import invalid
from personas.api.operations import Call
from personas.api.problems import FieldError, Problem, ProblemError
from personas.api.responses import Answer, answered, written
from personas.api.schema import Shape, listed, shape, whole
from personas.models import Agent, Workspace
from personas.selectors import agents_of
from skills.skill_format.parser import Problem as SkillProblem
from skills.sources.readers import outlooks_of

M = TypeVar("M", bound=Model)
TEXT: Shape = {"type": "string"}
# Nobody should meet a refused text by reading why it was refused, so excerpts stay on the pages.
FINDING = shape({"rule": TEXT, "severity": TEXT, "line": whole(), "column": whole(), "message": TEXT})
PROBLEM = shape({"field": TEXT, "line": whole(), "message": TEXT})
FINDINGS, PROBLEMS = listed(FINDING, most=100_000), listed(PROBLEM, most=100_000)
TAG = re.compile(r'(?:W/)?("[^"]*")')


def refuse_limited(call: Call) -> None:
    """What several agents share is not changed with a key that is limited to some of them."""
    if call.caller.agents is not None:
        said = "This key is limited to some agents; what others share is not changed with it."
        raise ProblemError(Problem(403, "out_of_scope", said))


def row_or_404(rows: QuerySet[M], key: int, *, below: int = 2**63) -> M:
    found = rows.filter(pk=key).first() if 0 < key < below else None
    if found is None:
        raise Http404
    return found


def agent_or_404(call: Call, slug: str, *, is_live: bool = False) -> Agent:
    """An agent this key may know of."""
    rows = agents_of(call.workspace).prefetch_related(None).filter(slug=slug)
    found = (rows.filter(archived_at=None) if is_live else rows).first()
    if found is None or not call.caller.may_touch(slug):
        raise Http404
    return found


def agents_named(call: Call, slugs: list[str], field: str) -> list[Agent]:
    """The agents in the order they were named; one that is not here is said of the field."""
    rows = Agent.objects.in_workspace(call.workspace).filter(archived_at=None, slug__in=slugs)
    found = {row.slug: row for row in rows if call.caller.may_touch(row.slug)}
    if set(slugs) - set(found):
        raise ProblemError(invalid([FieldError("There is no such record here.", f"/{field}")]))
    return [found[slug] for slug in slugs]


def sources_read_by(workspace: Workspace, agents: Iterable[str]) -> set[int]:
    """The ids of the sources that these agents read, by their own choice or their parents'."""
    named = set(agents)
    found = outlooks_of(workspace).values()
    return {one.source.pk for one in found if one.agent.slug in named and not one.agent.is_archived}


def whole_list(rows: list[dict[str, Any]]) -> Answer:
    """A list that is never long, in the form of those that are."""
    return answered({"data": rows, "next_cursor": None, "has_more": False})


def unless_seen(call: Call, value: Any) -> Answer:
    """The value with the digest of its bytes as its mark; 304 for whoever has it already."""
    etag = f'"{sha256(written(value)).hexdigest()}"'
    headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
    seen = call.headers.get("If-None-Match", "")
    if seen.strip() == "*" or etag in TAG.findall(seen):
        return Answer(304, headers=headers)
    return Answer(200, written(value), headers)


UNCHANGED: tuple[int, Mapping[str, Any]] = (304, {"description": "You have it already."})


def findings_told(findings: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{name: one[name] for name in FINDING["properties"]} for one in findings]


def problems_told(problems: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{name: one[name] for name in PROBLEM["properties"]} for one in problems]


def skill_problem_told(problem: SkillProblem) -> dict[str, Any]:
    return {"field": problem.field, "line": problem.line, "message": problem.message}
