"""Valid requests that the API rejected: which reasons are allowed, because a schema cannot express them."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

# Statuses that reject the values of a request. Others, such as 404, 409 and 412, are about existing objects.
REJECTED_STATUSES = frozenset({400, 422})
# Why a valid request may be rejected.
REFERENCE = "reference"  # what the request names does not exist
STATE = "state"  # what the request names is in a state that does not allow it
CURSOR = "cursor"  # a cursor of a list, which only the server creates
LIMIT = "limit"  # a limit of JSON texts (docs/api.md, “Limits”)
RELATION = "relation"  # a rule between two values, which JSON Schema cannot express


@dataclass(frozen=True)
class AllowedReason:
    """A reason to reject a valid request, as patterns of the operation, the place and the detail."""

    kind: str
    detail: str
    place: str = ".*"
    label: str = ".*"

    def matches(self, rejection: "Rejection") -> bool:
        pairs = (
            (self.label, rejection.label),
            (self.place, rejection.place),
            (self.detail, rejection.detail),
        )
        return all(re.fullmatch(pattern, text, re.DOTALL) for pattern, text in pairs)


ALLOWED_REASONS = (
    AllowedReason(CURSOR, "This cursor is not valid for this list.", r"\?cursor"),
    AllowedReason(REFERENCE, r"(Record|Memory|Task|Version|Prompt|Agent) not found\."),
    AllowedReason(REFERENCE, "“.*” does not exist.", "/(agents|channels)", ".*/webhooks.*"),
    AllowedReason(REFERENCE, "The (agent|channel) “.*” does not exist.", "/scopes", "POST .*/keys"),
    AllowedReason(
        REFERENCE,
        "There is no other member with this address who may approve releases.",
        r"/reviewers/\d+",
        "POST .*/releases.*",
    ),
    AllowedReason(
        REFERENCE, "(No|The) layout .*has (a|no) section “.*", "/section_limits", "PUT .*/prompt-settings/.*"
    ),
    AllowedReason(REFERENCE, "Enter a line number from 1 to .*", "/line", "POST .*/comments"),
    AllowedReason(REFERENCE, "This ledger row is not .*", "/ledger_id", "POST .*/prompts:report"),
    AllowedReason(REFERENCE, ".* its host has no public address.", "/url", ".*/webhooks.*"),
    AllowedReason(STATE, "The agent is not on this channel.", "/channel", "POST .*/preview"),
    # A name is taken.
    AllowedReason(STATE, "Another .* already has this value.*", "/(slug|name)", "(POST|PUT|PATCH) .*"),
    # The kind of the source in the path, and the agents that read it.
    AllowedReason(
        STATE,
        "Pushed files .*",
        "/(refresh_minutes|allow_hard_links|allowed_folder|folder)",
        r"(PUT|PATCH) .*/sources/\{slug\}",
    ),
    AllowedReason(STATE, "In use by .*", "/harnesses", r"(PUT|PATCH) .*/sources/\{slug\}"),
    # The account that the key acts for.
    AllowedReason(STATE, "Set up a second factor .*", "/requires_second_factor", "PATCH .*/workspace"),
    # The time of the request.
    AllowedReason(STATE, "Choose a date in the future.", "/expires_at", "POST .*/keys.*"),
    # A digest names a text, as an ETag does.
    AllowedReason(REFERENCE, "The digest does not match the text. .*", "/text", "POST .*/prompts:report"),
    AllowedReason(LIMIT, "A number has more than 19 digits."),
    # All levels of settings have one schema: a generator of clients cannot derive one from another.
    AllowedReason(
        RELATION,
        "Set an agent's identity, soul and user profile on the agent.*",
        label=r"PUT .*/prompt-settings/agents/\{agent\}",
    ),
    AllowedReason(RELATION, "“Valid until” must come after “valid from”.", label=".*"),
    AllowedReason(RELATION, "Must be after the start.", r"\?until", "GET .*/ledger.*"),
)


@dataclass(frozen=True)
class Rejection:
    """A value of a valid request that the API rejected."""

    label: str
    status: int
    code: str
    # A JSON pointer into the body, `?` and a query parameter, or a header and a colon.
    place: str
    detail: str
    value: str

    @property
    def allowed_kind(self) -> str:
        """The kind of the first reason in the table that matches, or an empty string."""
        return next((reason.kind for reason in ALLOWED_REASONS if reason.matches(self)), "")

    def __str__(self) -> str:
        place = self.place or "the request"
        return f"{self.label}: {self.status} {self.code} at {place}: {self.detail} Value: {self.value}"


def list_rejections(case: Any, status: int, text: str) -> Iterator[Rejection]:
    """Yield the errors of a response with 400 or 422, with the values that they are about."""
    if status not in REJECTED_STATUSES:
        return
    problem = json.loads(text)
    for error in problem.get("errors") or [{"detail": problem["detail"]}]:
        place, value = locate_error(case, error)
        yield Rejection(
            case.operation.label, status, problem["code"], place, error["detail"], f"{value!r:.300}"
        )


def locate_error(case: Any, error: dict[str, str]) -> tuple[str, Any]:
    """Return the place of an error, and the value there or the innermost object that should have it."""
    if name := error.get("parameter"):
        return f"?{name}", (case.query or {}).get(name)
    if name := error.get("header"):
        return f"{name}:", (case.headers or {}).get(name)
    pointer, value = error.get("pointer", ""), case.body
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        try:
            value = value[int(key) if isinstance(value, list) else key]
        except (KeyError, IndexError, TypeError, ValueError):
            break
    return pointer, value


def count_kinds(rejections: Iterable[Rejection]) -> Counter[str]:
    return Counter(rejection.allowed_kind or "other" for rejection in rejections)
