"""Foreign identifiers in request bodies and query strings.

They must be rejected like identifiers that do not exist.
"""

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import Any
from urllib.parse import urlencode

from personas.api.schema import Schema
from tests.isolation.api_cast import Caller, rolled_back_as_test
from tests.isolation.api_matrix import Cell, address, changes, error_text, may_call
from tests.isolation.api_probe import call
from tests.isolation.api_table import NEW, TABLE
from tests.isolation.api_walk import ApiEndpoint
from tests.isolation.cast import Stage
from tests.isolation.matrix import Digests, Outcome, leaks
from tests.isolation.probe import Answer

Path = tuple[str | int, ...]
NUMBER = 987_654_321
MISSING_VALUES = {"digest": "f" * 64, "path": "/srv/no-such-row", "word": "no-such-row"}
# These differ between two responses with the same meaning.
HEADERS = "Location|ETag|Content-Length|Dramatis-Ledger|Repr-Digest|RateLimit"
VOLATILE = re.compile(
    rf"""\d{{4}}-\d\d-\d\dT[^"\\]*|"(?:id|ledger_id|sequence)": ?\d+|'(?:{HEADERS})': '[^']*'"""
)


@dataclass(frozen=True)
class RowReference:
    """The kind of row that a field refers to, and the attribute that identifies it."""

    kind: str
    attribute: str = "slug"
    like: str = "word"
    variant: str = "plain"

    def of(self, stage: Stage, home: str) -> Any:
        return attrgetter(self.attribute)(stage.row(home, self.kind, self.variant))

    def missing_value(self, value: Any) -> Any:
        """A value that identifies no row, as long as the foreign one, because responses may quote it."""
        return (
            NUMBER
            if isinstance(value, int)
            else MISSING_VALUES[self.like].ljust(len(value), "x")[: len(value)]
        )


AGENT, CHANNEL, SOUL = RowReference("agents"), RowReference("channels"), RowReference("souls")
TOOL, VERSION = RowReference("tools", "name"), RowReference("prompts", "latest.digest", "digest")
NAMES: dict[str, RowReference] = {
    "agent": AGENT,
    "agents": AGENT,
    "parent": AGENT,
    "channel": CHANNEL,
    "channels": CHANNEL,
    "identity": RowReference("identities"),
    "soul": SOUL,
    "user_profile": RowReference("user-profiles"),
    "tools": TOOL,
    "planning_tools": TOOL,
    "source": RowReference("sources"),
    "allowed_folder": RowReference("grants", "path", "path"),
    "superseded_by": RowReference("memories", "pk"),
    "reviewers": RowReference("reviewers", "user.email"),
    "id": RowReference("files", "pk"),
    "version": VERSION,
    "expected": VERSION,
    "to": VERSION,
    "digest": VERSION,
    "against": VERSION,
    "known_digest": VERSION,
    "ledger_id": RowReference("ledger", "pk"),
    "object_id": RowReference("agents", "pk"),
    "request_id": RowReference("ledger", "request_id"),
    "run": RowReference("runs", "pk", variant="held"),
    "task": RowReference("tasks", "number"),
}
# Operations in which a field name refers to another kind of row; None: to no row.
EXCEPTIONS: dict[tuple[str, str], RowReference | None] = {
    ("memories-list", "source"): None,
    ("memories-one", "source"): None,
    ("memories-import", "source"): None,
    ("agents-import", "identity"): None,
    ("ledger-list", "key"): RowReference("keys", "pk"),
    ("preview", "key"): SOUL,
    ("impact", "key"): SOUL,
    ("context-files-approve", "digest"): RowReference("files", "latest.digest", "digest"),
    ("context-files-approve-many", "digest"): RowReference("files", "latest.digest", "digest"),
    ("context-files-waive", "digest"): RowReference("files", "latest.digest", "digest", "quarantined"),
    **{
        (f"{kind}-{verb}-many", "ids"): RowReference(kind, "pk", variant="spare")
        for kind in NEW
        for verb in ("archive", "restore", "approve", "reject")
    },
    ("responsibilities-order", "ids"): RowReference("responsibilities", "pk"),
    ("usages-list", "id"): RowReference("souls", "pk"),
    # The caller's own tools, not records of the workspace.
    ("render", "tools"): None,
}
# Fields that refer to no row: text, choices, numbers, positions.
PLAIN_NAMES = """
    after approval all_files allow_hard_links allowed_tools append archived at base64 body capabilities
    channel_name compatibility content context creature cursor data description directories
    disable_model_invocation display_name documentation_additional documentation_examples
    documentation_main email emoji entry error expires_at extra extra_skill_folders fields file_names
    files folder for_all_agents formatting guidelines harness harnesses has_context_files has_skills
    hidden host in_use instructions is_background is_complete is_done is_known_version is_protected
    is_required key kind label labels layout license limit limits line list_sample location memories
    memory message messages metadata mission mode name native_tools needs_review note notes now number
    omit_reference overlap_hours parameters path per_file plan_path previous_error prompts
    pulled_skills_folder q reason record refresh_minutes release_policy replace responsibilities role
    sample_data sandbox scope scopes section_limits sections session signature since slug snippet sources
    is_enabled state status steps string_truncate text timezone title token_budget total total_characters
    types until url
    updated_since valid_from valid_until values verb verbs vibe wait working_directory
"""
MORE_PLAIN_NAMES = """
    default_release_policy requires_second_factor
    also_erase trace_id with_created
    caps depth entries file_bytes folder_entries folder_files format global_folder off paths rules seconds
    skip_folders take total_bytes
    accept_language arch backend enabled home image model network os provider shell sudo_non_interactive
    workspace_mount skills
"""
PLAIN = frozenset((PLAIN_NAMES + MORE_PLAIN_NAMES).split())
# A reported digest is stored as sent and not trusted.
# In a batch each item is rejected separately.
ACCEPTED = {
    "POST prompts-report digest",
    "POST prompts-report request_id",
    "POST context-files-approve-many id",
    "POST context-files-approve-many digest",
    "POST batch-get agent",
    "POST batch-get channel",
    "POST batch-get known_digest",
}
# Bodies with free-form keys, which the schema does not describe.
BY_HAND: dict[str, list[tuple[Path, Mapping[str, Any], str, RowReference]]] = {
    name: [
        ((*at, "values"), {"kind": "memory", "values": {"text": "Fresh."}}, "agent", AGENT),
        ((*at, "values"), {"kind": "agent", "values": {"slug": "fresh", "name": "Fresh"}}, "soul", SOUL),
        ((*at, "values"), {"kind": "agent", "values": {"slug": "fresh", "name": "Fresh"}}, "tools", TOOL),
    ]
    for name, at in (("POST preview", ("record",)), ("POST impact", ()))
}


# --- fields that refer to rows -------------------------------------------------------------------------


def fields_of(schema: Schema, at: Path = ()) -> Iterator[tuple[Path, Schema]]:
    """Yield every field of a body schema with its path; index 0 represents the items of a list.

    Read-only fields are left out: the server compares them and stores none.
    """
    for name, field in schema.get("properties", {}).items():
        if field.get("readOnly"):
            continue
        yield (*at, name), field
        yield from fields_of(field, (*at, name))
        for alternative in field.get("anyOf", ()):
            yield from fields_of(alternative, (*at, name))
    if "items" in schema:
        yield from fields_of(schema["items"], (*at, 0))


def get_reference(endpoint: ApiEndpoint, name: str) -> RowReference | None:
    return EXCEPTIONS[endpoint.name, name] if (endpoint.name, name) in EXCEPTIONS else NAMES.get(name)


def find_unknown_fields(endpoints: list[ApiEndpoint]) -> list[str]:
    """Find fields that neither NAMES nor PLAIN lists."""
    fields = {
        (name, str(endpoint))
        for endpoint in endpoints
        for name in [
            *endpoint.operation.query,
            *(str(at[-1]) for at, _ in fields_of(endpoint.operation.body or {})),
        ]
    }
    return [
        f"{endpoint}: does “{name}” name a row? "
        "Add it to NAMES or PLAIN in tests/isolation/api_substitution.py"
        for name, endpoint in sorted(fields)
        if name not in NAMES and name not in PLAIN and name not in {field for _, field in EXCEPTIONS}
    ]


# --- requests ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FieldProbe:
    """One field of one operation, to be filled with a foreign identifier."""

    endpoint: ApiEndpoint
    place: Path
    named: RowReference
    is_list: bool = False
    base: Any = None

    def __str__(self) -> str:
        return f"{self.endpoint} {self.place[-1]}"


def list_probes(stage: Stage, endpoint: ApiEndpoint, home: str) -> Iterator[FieldProbe]:
    base = TABLE[str(endpoint)].body
    for at, field in fields_of(endpoint.operation.body or {}):
        named = get_reference(endpoint, str(at[-1]))
        if named and "object" not in (field.get("type"), field.get("items", {}).get("type")):
            yield FieldProbe(
                endpoint, at, named, field.get("type") == "array", base(stage, home) if base else {}
            )
    for at, record, name, named in BY_HAND.get(str(endpoint), []):
        body = deepcopy(base(stage, home)) if base else {}
        body = body | {at[0]: record} if len(at) > 1 else dict(record)
        yield FieldProbe(endpoint, (*at, name), named, name == "tools", body)


def run_bodies(stage: Stage, caller: Caller, endpoints: list[ApiEndpoint], before: Digests) -> Outcome:
    outcome = Outcome()
    for endpoint in endpoints:
        if may_call(caller, endpoint):
            for probe in list_probes(stage, endpoint, caller.home):
                outcome.cells += 2
                findings = probe_body(stage, caller, probe, before)
                outcome.findings += [f"{caller.name} · {probe}: {finding}" for finding in findings]
    return outcome


def probe_body(stage: Stage, caller: Caller, probe: FieldProbe, before: Digests) -> list[str]:
    foreign = probe.named.of(stage, caller.away)
    findings, shapes = [], []
    for value in (foreign, probe.named.missing_value(foreign)):
        body = fill_body(probe.base, probe.place, [value] if probe.is_list else value)
        with rolled_back_as_test():
            answer = send_body(stage, caller, probe.endpoint, body)
            # An accepted request may change the caller's own rows, but no others.
            is_accepted = answer.status < 400
            findings += leaks(stage, caller, answer, str(body))
            findings += changes(stage, caller, answer, before, is_allowed=is_accepted)
            if answer.status >= 500 or (is_accepted and str(probe) not in ACCEPTED):
                findings.append(f"{value} was answered {answer.status}{error_text(answer)}")
            shapes.append(plain(answer, value))
    return findings + (["foreign and missing can be told apart"] if shapes[0] != shapes[1] else [])


def send_body(stage: Stage, caller: Caller, endpoint: ApiEndpoint, body: Any) -> Answer:
    headers = TABLE[str(endpoint)].get_precondition(endpoint)
    return call(caller, endpoint.method, address(stage, Cell(caller, endpoint, "own")), body, headers)


def plain(answer: Answer, value: Any) -> str:
    """The response without the value that was sent; numbers only in quotes: others may occur anywhere."""
    return VOLATILE.sub("", answer.shape.replace(value if isinstance(value, str) else f"“{value}”", "…"))


def fill_body(body: Any, place: Path, value: Any) -> Any:
    """Return a copy of the body with the value at the path; missing containers are created."""
    copy = deepcopy(body)
    inner = copy
    for step, following in pairwise(place):
        if isinstance(inner, list):
            if not inner:
                inner.append({})
        elif inner.get(step) is None:
            inner[step] = [] if following == 0 else {}
        inner = inner[step]
    inner[place[-1]] = value
    return copy


def run_queries(stage: Stage, caller: Caller, endpoints: list[ApiEndpoint], before: Digests) -> Outcome:
    """A filter with a foreign identifier must give the same result as one with a missing identifier."""
    outcome = Outcome()
    for endpoint in endpoints:
        for name in endpoint.operation.query if may_call(caller, endpoint) else ():
            if named := get_reference(endpoint, name):
                outcome.cells += 2
                findings = probe_query(stage, caller, endpoint, name, named, before)
                outcome.findings += [f"{caller.name} · {endpoint}?{name}: {finding}" for finding in findings]
    return outcome


def probe_query(  # noqa: PLR0917  # all of them vary
    stage: Stage, caller: Caller, endpoint: ApiEndpoint, name: str, named: RowReference, before: Digests
) -> list[str]:
    foreign = named.of(stage, caller.away)
    findings, shapes = [], []
    cell, query = Cell(caller, endpoint, "own"), TABLE[str(endpoint)].query
    base = query(stage, caller.home) if query else {}
    path = address(stage, cell).partition("?")[0]
    for value in (foreign, named.missing_value(foreign)):
        url = f"{path}?{urlencode(base | {name: value})}"
        with rolled_back_as_test():
            answer = call(caller, "GET", url)
            findings += leaks(stage, caller, answer, url)
            # An export of the own workspace is audited there.
            is_allowed = answer.status < 400 and str(endpoint).endswith("-export")
            findings += changes(stage, caller, answer, before, is_allowed=is_allowed)
        if answer.status >= 500:
            findings.append(f"{value} was answered {answer.status}")
        shapes.append(plain(answer, value))
    return findings + (["foreign and missing can be told apart"] if shapes[0] != shapes[1] else [])
