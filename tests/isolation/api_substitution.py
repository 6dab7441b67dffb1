"""Foreign identifiers in request bodies and query strings: they must be rejected like identifiers that do not exist."""

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import Any
from urllib.parse import urlencode

from personas.api.schema import Schema
from tests.isolation.api_cast import Caller, unnoticed
from tests.isolation.api_matrix import Cell, address, changes, opens, why
from tests.isolation.api_probe import call
from tests.isolation.api_table import TABLE
from tests.isolation.api_walk import Door
from tests.isolation.cast import Stage
from tests.isolation.matrix import Digests, Outcome, leaks
from tests.isolation.probe import Answer

Path = tuple[str | int, ...]
NUMBER = 987_654_321
NOBODY = {"digest": "f" * 64, "path": "/srv/no-such-row", "word": "no-such-row"}
# These differ between two responses with the same meaning.
HEADERS = "Location|ETag|Content-Length|X-Ledger-ID|Repr-Digest|RateLimit"
VOLATILE = re.compile(
    rf"""\d{{4}}-\d\d-\d\dT[^"\\]*|"(?:id|ledger_id|sequence)": ?\d+|'(?:{HEADERS})': '[^']*'"""
)


@dataclass(frozen=True)
class Named:
    """The kind of row that a field refers to, and the attribute that identifies it."""

    kind: str
    attribute: str = "slug"
    like: str = "word"
    variant: str = "plain"

    def of(self, stage: Stage, home: str) -> Any:
        return attrgetter(self.attribute)(stage.row(home, self.kind, self.variant))

    def nobody(self, value: Any) -> Any:
        """A value that identifies no row, as long as the foreign one, because responses may quote it."""
        return NUMBER if isinstance(value, int) else NOBODY[self.like].ljust(len(value), "x")[: len(value)]


AGENT, CHANNEL, SOUL = Named("agents"), Named("channels"), Named("souls")
TOOL, VERSION = Named("tools", "name"), Named("prompts", "latest.digest", "digest")
NAMES: dict[str, Named] = {
    "agent": AGENT,
    "agents": AGENT,
    "parent": AGENT,
    "channel": CHANNEL,
    "channels": CHANNEL,
    "identity": Named("identities"),
    "soul": SOUL,
    "user_profile": Named("user-profiles"),
    "tools": TOOL,
    "planning_tools": TOOL,
    "source": Named("sources"),
    "grant": Named("grants", "path", "path"),
    "by": Named("memories", "pk"),
    "id": Named("files", "pk"),
    "version": VERSION,
    "expected": VERSION,
    "to": VERSION,
    "digest": VERSION,
    "against": VERSION,
    "known_digest": VERSION,
    "ledger_id": Named("ledger", "pk"),
    "object_id": Named("agents", "pk"),
    "request_id": Named("ledger", "request_id"),
    "task": Named("tasks", "number"),
}
# Operations in which a field name refers to another kind of row; None: to no row.
OTHERWISE: dict[tuple[str, str], Named | None] = {
    ("memories-list", "source"): None,
    ("memories-one", "source"): None,
    ("ledger-list", "key"): Named("keys", "pk"),
    ("preview", "key"): SOUL,
    ("impact", "key"): SOUL,
    ("context-files-adopt", "digest"): Named("files", "newest.digest", "digest"),
    ("context-files-adopt-many", "digest"): Named("files", "newest.digest", "digest"),
    ("context-files-waive", "digest"): Named("files", "newest.digest", "digest", "quarantined"),
    # The caller's own tools, not records of the workspace.
    ("render", "tools"): None,
}
# Fields that refer to no row: text, choices, numbers, positions.
PLAIN_WORDS = """
    adoption allowed_tools append at base64 belief body channel_name compatibility context creature cursor
    description disable_model_invocation emoji entry error expires_at extra fields files folder for_all_agents
    formatting guidelines harness harnesses host instructions is_background is_complete is_done is_needed
    is_protected is_version is_waiting key kind label labels layout license limit location message messages
    metadata mission mode name native_tools note notes now number overlap_hours parameters path plan_path
    previous_error prompts q reach reason record refresh_minutes release_policy replace role sandbox scopes
    session signature since slug snippet state status steps text timezone title token_budget total_characters
    until updated_since valid_from valid_until values verb verbs vibe working_directory
"""
PLAIN = frozenset(PLAIN_WORDS.split())
# A reported digest is stored as sent and not trusted.
# In a batch each item is rejected separately.
TAKEN = {
    "POST prompts-report digest",
    "POST prompts-report request_id",
    "POST context-files-adopt-many id",
    "POST context-files-adopt-many digest",
    "POST batch-get agent",
    "POST batch-get channel",
    "POST batch-get known_digest",
}
# Bodies with free-form keys, which the schema does not describe.
BY_HAND: dict[str, list[tuple[Path, Mapping[str, Any], str, Named]]] = {
    name: [
        ((*at, "values"), {"kind": "memory", "values": {"text": "Fresh."}}, "agent", AGENT),
        ((*at, "values"), {"kind": "agent", "values": {"slug": "fresh", "name": "Fresh"}}, "soul", SOUL),
        ((*at, "values"), {"kind": "agent", "values": {"slug": "fresh", "name": "Fresh"}}, "tools", TOOL),
    ]
    for name, at in (("POST preview", ("record",)), ("POST impact", ()))
}


# --- fields that refer to rows -------------------------------------------------------------------------


def fields_of(shape: Schema, at: Path = ()) -> Iterator[tuple[Path, Schema]]:
    """Yield every field of a body schema with its path; index 0 represents the items of a list."""
    for name, said in shape.get("properties", {}).items():
        yield (*at, name), said
        yield from fields_of(said, (*at, name))
        for one in said.get("anyOf", ()):
            yield from fields_of(one, (*at, name))
    if "items" in shape:
        yield from fields_of(shape["items"], (*at, 0))


def meaning(door: Door, name: str) -> Named | None:
    return OTHERWISE[door.name, name] if (door.name, name) in OTHERWISE else NAMES.get(name)


def strange_words(doors: list[Door]) -> list[str]:
    """Find fields that neither NAMES nor PLAIN lists."""
    words = {
        (name, str(door))
        for door in doors
        for name in [*door.operation.query, *(str(at[-1]) for at, _ in fields_of(door.operation.body or {}))]
    }
    return [
        f"{door}: does “{name}” name a row? Say so in tests/isolation/api_substitution.py (NAMES or PLAIN)"
        for name, door in sorted(words)
        if name not in NAMES and name not in PLAIN
    ]


# --- requests ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Question:
    """One field of one operation, to be filled with a foreign identifier."""

    door: Door
    place: Path
    named: Named
    is_list: bool = False
    base: Any = None

    def __str__(self) -> str:
        return f"{self.door} {self.place[-1]}"


def questions(stage: Stage, door: Door, home: str) -> Iterator[Question]:
    base = TABLE[str(door)].body
    for at, said in fields_of(door.operation.body or {}):
        named = meaning(door, str(at[-1]))
        if named and "object" not in (said.get("type"), said.get("items", {}).get("type")):
            yield Question(door, at, named, said.get("type") == "array", base(stage, home) if base else {})
    for at, record, name, named in BY_HAND.get(str(door), []):
        body = deepcopy(base(stage, home)) if base else {}
        whole = body | {at[0]: record} if len(at) > 1 else dict(record)
        yield Question(door, (*at, name), named, name == "tools", whole)


def run_bodies(stage: Stage, caller: Caller, doors: list[Door], before: Digests) -> Outcome:
    outcome = Outcome()
    for door in doors:
        if opens(caller, door):
            for question in questions(stage, door, caller.home):
                outcome.cells += 2
                words = ask_body(stage, caller, question, before)
                outcome.findings += [f"{caller.name} · {question}: {word}" for word in words]
    return outcome


def ask_body(stage: Stage, caller: Caller, question: Question, before: Digests) -> list[str]:
    foreign = question.named.of(stage, caller.away)
    findings, shapes = [], []
    for value in (foreign, question.named.nobody(foreign)):
        body = filled(question.base, question.place, [value] if question.is_list else value)
        with unnoticed():
            answer = sent(stage, caller, question.door, body)
            # An accepted request may change the caller's own rows, but no others.
            is_taken = answer.status < 400
            findings += leaks(stage, caller, answer, str(body))
            findings += changes(stage, caller, answer, before, is_allowed=is_taken)
            if answer.status >= 500 or (is_taken and str(question) not in TAKEN):
                findings.append(f"{value} was answered {answer.status}{why(answer)}")
            shapes.append(plain(answer, value))
    return findings + (["foreign and missing can be told apart"] if shapes[0] != shapes[1] else [])


def sent(stage: Stage, caller: Caller, door: Door, body: Any) -> Answer:
    headers = {"If-Match": "*"} if door.operation.is_conditional else {}
    return call(caller, door.method, address(stage, Cell(caller, door, "own")), body, headers)


def plain(answer: Answer, value: Any) -> str:
    """The response without the value that was sent; numbers stay, because they may occur anywhere."""
    return VOLATILE.sub("", answer.shape.replace(value, "…") if isinstance(value, str) else answer.shape)


def filled(body: Any, place: Path, value: Any) -> Any:
    """Return a copy of the body with the value at the path; missing containers are created."""
    made = deepcopy(body)
    inner = made
    for step, following in pairwise(place):
        if isinstance(inner, list):
            if not inner:
                inner.append({})
        elif inner.get(step) is None:
            inner[step] = [] if following == 0 else {}
        inner = inner[step]
    inner[place[-1]] = value
    return made


def run_queries(stage: Stage, caller: Caller, doors: list[Door], before: Digests) -> Outcome:
    """A filter with a foreign identifier must give the same result as one with a missing identifier."""
    outcome = Outcome()
    for door in doors:
        for name in door.operation.query if opens(caller, door) else ():
            if named := meaning(door, name):
                outcome.cells += 2
                words = ask_query(stage, caller, door, name, named, before)
                outcome.findings += [f"{caller.name} · {door}?{name}: {word}" for word in words]
    return outcome


def ask_query(  # noqa: PLR0917  # one question of many, and all of it differs
    stage: Stage, caller: Caller, door: Door, name: str, named: Named, before: Digests
) -> list[str]:
    foreign = named.of(stage, caller.away)
    findings, shapes = [], []
    cell, asked = Cell(caller, door, "own"), TABLE[str(door)].query
    base = asked(stage, caller.home) if asked else {}
    path = address(stage, cell).partition("?")[0]
    for value in (foreign, named.nobody(foreign)):
        whole = f"{path}?{urlencode(base | {name: value})}"
        answer = call(caller, "GET", whole)
        findings += leaks(stage, caller, answer, whole)
        findings += changes(stage, caller, answer, before, is_allowed=False)
        if answer.status >= 500:
            findings.append(f"{value} was answered {answer.status}")
        shapes.append(plain(answer, value))
    return findings + (["foreign and missing can be told apart"] if shapes[0] != shapes[1] else [])
