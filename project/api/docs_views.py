"""The same document for people: operations by theme, what they take and give, and a line to try each."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from personas.api.problems import PROBLEM_TITLES
from project.api.openapi import build_openapi_document
from project.api.urls import urlpatterns

PROBLEM_ADVICE = {
    "bad_request": _("Something about the request as a whole cannot be read. The detail says what."),
    "bad_json": _("Send UTF-8 JSON: no NaN, no name twice in an object, at most 64 levels."),
    "bad_key": _("The key is missing, mistyped, expired or revoked; which of them is not told."),
    "out_of_scope": _("The key is good, but its kind, verbs, agents or its maker's role forbid this."),
    "not_allowed": _("Somebody else has to do this: an owner, a reviewer, or anyone but the author."),
    "not_found": _("There is nothing under this name in the key's workspace."),
    "no_version": _("The prompt is known, and nothing was built or released for it yet."),
    "method_not_allowed": _("See the Allow header for the methods of this address."),
    "not_acceptable": _("Ask for one of the media types in the detail."),
    "conflict": _("Somebody else was faster. Look again and decide anew."),
    "in_use": _("Other records lean on it. Take it out there first."),
    "in_progress": _("The first call under this Idempotency-Key has not ended. Ask again after Retry-After."),
    "erased": _("The words were erased for good. Nobody gets them again."),
    "refused": _("A rule of the house forbids it. The detail says which."),
    "precondition_failed": _("The record has changed since. Read it again, then send your change anew."),
    "precondition_required": _("Send If-Match with the ETag of what you have seen."),
    "body_too_large": _("A body has at most 1 MiB."),
    "unsupported_media_type": _("Send application/json."),
    "invalid": _(
        "Each entry of errors names a value (pointer, parameter or header) and what is wrong with it."
    ),
    "key_reused": _("An Idempotency-Key belongs to one body. Take a new one for another."),
    "archived": _("It was taken out of use. Bring it back first."),
    "bad_bundle": _("What was pushed cannot be taken as a whole; the detail names the file."),
    "bad_invitation": _("The invitation is forged, used or expired."),
    "key_ended": _("The key has expired or was revoked. Make a new one."),
    "no_signing_key": _("The installation has no key to sign with. Tell its operators."),
    "not_adoptable": _("The file holds what must be looked at first."),
    "not_copyable": _("This skill cannot be copied from its source."),
    "not_erasable": _("Only memories and user profiles can be erased, and only once."),
    "not_exportable": _("This skill cannot be written as a file. The detail says why."),
    "not_pushed": _("Its files come from a folder, not by pushing."),
    "not_spoken": _("The agent does not speak on this channel. Choose one of its own."),
    "not_the_same": _("What was built again differs from what was recorded. Verify the record."),
    "not_yours": _("An admin key acts for its maker alone."),
    "nothing_then": _("There was no version, or the label pointed at none, at that moment."),
    "nothing_to_release": _("The label points there already."),
    "release_closed": _("The release was decided already."),
    "release_voided": _("Something changed since it was requested. Request a new release."),
    "rolled_off": _("The ledger keeps its rows for a time, and this one is gone."),
    "strange_version": _("The version belongs to another prompt."),
    "unknown_fetch": _("No such row stands in the ledger."),
    "unknown_label": _("The prompt has no such label."),
    "rate_limited": _("Wait for Retry-After. RateLimit-Policy says how much a minute holds."),
    "server_error": _("A fault of ours. Tell us the request id."),
    "unavailable": _("Without a record no prompt leaves. Use your last copy and ask again."),
    "draft_moved": _("The draft is gone, or was changed since it was looked at. Look again."),
    "too_much_kept": _("Somebody keeps more drafts, or a longer one, than there is room for. Discard some."),
}


@cache
def get_openapi_document() -> dict[str, Any]:
    return build_openapi_document(urlpatterns, settings.PUBLIC_URL)


@cache
def render_openapi() -> bytes:
    return json.dumps(get_openapi_document(), ensure_ascii=False).encode()


@login_not_required
@require_safe
def openapi_json(request: HttpRequest) -> HttpResponse:
    answer = HttpResponse(render_openapi(), content_type="application/json")
    answer["Cache-Control"] = "public, max-age=300"
    answer["Access-Control-Allow-Origin"] = "*"
    return answer


HTTP_METHODS = ("get", "post", "put", "patch", "delete")
TYPE_LABELS = {"string": "text", "integer": "whole number", "boolean": "true or false", "array": "list"}


@dataclass(frozen=True)
class FieldDoc:
    """One value that is taken or given."""

    name: str
    kind: str
    is_needed: bool
    said: str


@dataclass(frozen=True)
class OperationDoc:
    """One operation as the page shows it."""

    id: str
    method: str
    path: str
    summary: str
    note: str
    takes: list[FieldDoc]
    body: list[FieldDoc]
    gives: list[FieldDoc]
    status: str
    refusals: list[tuple[str, str]]
    try_it: str


@dataclass
class OperationGroup:
    """Operations that belong together."""

    name: str
    operations: list[OperationDoc] = field(default_factory=list)


@cache
def list_operation_groups() -> list[OperationGroup]:
    found: dict[str, OperationGroup] = {}
    for path, item in get_openapi_document()["paths"].items():
        for method in HTTP_METHODS:
            if said := item.get(method):
                tag = said["tags"][0]
                theme = found.setdefault(tag, OperationGroup(tag))
                theme.operations.append(build_operation_doc(method, path, item.get("parameters", []), said))
    return list(found.values())


def build_operation_doc(
    method: str, path: str, named: list[dict[str, Any]], said: Mapping[str, Any]
) -> OperationDoc:
    body = said.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    good = next(status for status in said["responses"] if status < "300")
    answer = said["responses"][good].get("content", {}).get("application/json", {}).get("schema")
    return OperationDoc(
        id=said["operationId"],
        method=method.upper(),
        path=path,
        summary=said["summary"],
        note=said.get("description", ""),
        takes=[build_parameter_doc(one) for one in [*named, *said.get("parameters", [])]],
        body=list(list_field_docs(body)) if body else [],
        gives=list(list_field_docs(answer)) if answer else [],
        status=good,
        refusals=[
            (status, words["description"]) for status, words in said["responses"].items() if status >= "400"
        ],
        try_it=build_curl_command(method.upper(), path, said, body),
    )


def build_parameter_doc(one: Mapping[str, Any]) -> FieldDoc:
    shape = one["schema"]
    words = " ".join(
        filter(None, [one.get("description", ""), shape.get("description", ""), describe_bounds(shape)])
    )
    return FieldDoc(f"{one['name']} ({one['in']})", describe_type(shape), one.get("required", False), words)


def list_field_docs(shape: Mapping[str, Any], prefix: str = "") -> Iterator[FieldDoc]:
    """The fields of an object, and of the objects in it; lists are marked with []."""
    if shape.get("type") == "array":
        yield from list_field_docs(shape["items"], f"{prefix}[]")
        return
    needed = set(shape.get("required", ()))
    for name, one in shape.get("properties", {}).items():
        place = f"{prefix}.{name}" if prefix else name
        yield FieldDoc(
            place,
            describe_type(one),
            name in needed,
            " ".join(filter(None, [one.get("description", ""), describe_bounds(one)])),
        )
        inner = one.get("items", one)
        if inner.get("properties"):
            yield from list_field_docs(inner, f"{place}[]" if "items" in one else place)


def describe_type(shape: Mapping[str, Any]) -> str:
    if "anyOf" in shape:
        return " or ".join(describe_type(one) for one in shape["anyOf"])
    if "enum" in shape:
        return "one of: " + ", ".join(map(str, shape["enum"]))
    kinds = shape.get("type", "anything")
    names = [kinds] if isinstance(kinds, str) else kinds
    if shape.get("format") == "date-time":
        names = ["moment" if name == "string" else name for name in names]
    return " or ".join(TYPE_LABELS.get(name, name) for name in names)


def describe_bounds(shape: Mapping[str, Any]) -> str:
    if most := shape.get("maxLength"):
        return f"At most {most:,} characters."
    if shape.get("type") == "integer" and shape.get("maximum", 2**31) < 2**31 - 1:
        return f"{shape.get('minimum', 0):,} to {shape['maximum']:,}."
    return f"At most {shape['maxItems']:,}." if "maxItems" in shape else ""


def build_curl_command(
    method: str, path: str, said: Mapping[str, Any], body: Mapping[str, Any] | None
) -> str:
    parts = [f"curl -X {method} {settings.PUBLIC_URL}{path}", "-H 'Authorization: Bearer $DRAMATIS_KEY'"]
    if any(one["name"] == "If-Match" for one in said.get("parameters", [])):
        parts.append("""-H 'If-Match: "1"'""")
    if body is not None:
        example = said["requestBody"]["content"]["application/json"].get("example") or build_example_body(
            body
        )
        parts += ["-H 'Content-Type: application/json'", f"-d '{json.dumps(example, ensure_ascii=False)}'"]
    return " \\\n  ".join(parts).replace(
        "'Authorization: Bearer $DRAMATIS_KEY'", '"Authorization: Bearer $DRAMATIS_KEY"'
    )


def build_example_body(shape: Mapping[str, Any]) -> dict[str, Any]:
    """The needed fields, each with something in it."""
    fields = shape.get("properties", {})
    names = shape.get("required") or list(fields)[:1]
    return {name: build_example_value(name, fields[name]) for name in names}


def build_example_value(name: str, shape: Mapping[str, Any]) -> Any:
    if "enum" in shape:
        return shape["enum"][0]
    kind = shape.get("type")
    if kind == "array":
        return [build_example_value(name, shape["items"])]
    if kind == "object":
        return build_example_body(shape)
    return {"integer": 1, "boolean": True}.get(str(kind), name)


@login_not_required
@require_safe
def api_reference(request: HttpRequest) -> HttpResponse:
    found = list_operation_groups()
    count = sum(len(theme.operations) for theme in found)
    return render(request, "api/docs.html", {"themes": found, "count": count, "server": settings.PUBLIC_URL})


@login_not_required
@require_safe
def error_reference(request: HttpRequest) -> HttpResponse:
    said = [(code, title, PROBLEM_ADVICE[code]) for code, title in sorted(PROBLEM_TITLES.items())]
    return render(request, "api/errors.html", {"problems": said})
