"""Rows of the API table: how to call an operation, and which seeded row a URL parameter names."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from prompts.models import PromptLabel
from skills.models import PushedFile, RefreshRun
from tests.isolation.api_walk import ApiEndpoint
from tests.isolation.cast import KINDS, Stage

RowValue = Callable[[Stage, str], str]
Body = Callable[[Stage, str], Any]


@dataclass(frozen=True)
class Row:
    """How to call an operation; the expected status follows from the operation."""

    # URL parameters that name rows, and those that do not.
    names: Mapping[str, RowValue] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    body: Body | None = None
    query: Body | None = None
    # Whether an allowed call must change rows: the positive control.
    changes: bool = True
    # Status for a key that is limited to one agent; 0: the same as for other keys.
    narrow: int = 0
    # Status for such a key and another agent, or a key limited to some channels and another channel: serving
    # checks the scope before it looks up agent and channel.
    beyond: int = 404
    # Status for bots that have the permission: some lists contain only their own rows.
    bots: int = 0
    # Statuses of callers that the operation itself rejects, by caller name.
    others: Mapping[str, int] = field(default_factory=dict)
    if_match: str = "*"
    # Whether the PUT creates a row, with `If-None-Match: *` and status 201.
    creates: bool = False

    def get_precondition(self, endpoint: ApiEndpoint) -> dict[str, str]:
        if self.creates:
            return {"If-None-Match": "*"}
        return {"If-Match": self.if_match} if endpoint.operation.is_conditional else {}


def row(kind: str, attribute: str = "", variant: str = "plain") -> RowValue:
    """The URL value of a seeded row."""
    name = attribute or (KINDS[kind][1] if kind in KINDS else "pk")
    return lambda stage, home: str(attrgetter(name)(stage.row(home, kind, variant)))


def run_of_source(stage: Stage, home: str) -> str:
    source = stage.row(home, "sources")
    return str(
        RefreshRun.objects.in_workspace(source.workspace_id)
        .filter(source=source)
        .values_list("pk", flat=True)[0]
    )


def label_of_prompt(stage: Stage, home: str) -> str:
    """The label that is not `production`."""
    prompt = stage.row(home, "prompts")
    rows = PromptLabel.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt)
    rows = rows.exclude(name="production")
    return str(rows.values_list("name", flat=True)[0])


def path_of_push(stage: Stage, home: str) -> str:
    source = stage.row(home, "sources", "pushed")
    return str(
        PushedFile.objects.in_workspace(source.workspace_id)
        .filter(source=source)
        .values_list("path", flat=True)[0]
    )


def of_agent(stage: Stage, home: str) -> dict[str, str]:
    return {"agent": stage.key(home, "agents")}


def constant(value: Any) -> Body:
    return lambda stage, home: value
