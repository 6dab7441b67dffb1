"""The OpenAPI document as JSON, and the API reference and error pages that are built from it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.cache import get_conditional_response, patch_vary_headers
from django.utils.http import quote_etag
from django.utils.safestring import SafeString
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from personas.api.problems import PROBLEM_TITLES
from project.api.openapi import build_openapi_document, get_operations
from project.api.problem_responses import get_problem_codes
from project.api.urls import urlpatterns

PROBLEM_ADVICE = {
    "bad_request": _("The request is malformed. See the detail field for the reason."),
    "invalid_json": _("Send JSON in UTF-8, without NaN or duplicate names, nested at most 64 levels deep."),
    "invalid_key": _("The key is missing, mistyped, expired or revoked. The response does not say which."),
    "out_of_scope": _("The key is valid, but its kind, its scope or its creator's role does not allow this."),
    "not_allowed": _(
        "This is not allowed, for example because another member must approve it. "
        "See the detail field for the reason."
    ),
    "not_found": _("Nothing with this name exists in the key's workspace."),
    "no_version": _("The prompt exists, but has no built or released version yet."),
    "method_not_allowed": _("See the Allow header for supported methods."),
    "not_acceptable": _("Request one of the media types in the detail field."),
    "conflict": _("Another request changed this first. Read it again, then retry."),
    "in_use": _("Other records use this record. Remove it from them first."),
    "in_progress": _(
        "The first request with this Idempotency-Key is still running. Wait for "
        "the time given in the Retry-After header, then retry."
    ),
    "email_not_sent": _("The mail server did not accept the email. Send it again later."),
    "erased": _("The text was erased permanently."),
    "refused": _("A rule does not allow this. See the detail field for the rule."),
    "precondition_failed": _(
        "The record changed in the meantime. Read it again, then send your change with the new ETag."
    ),
    "precondition_required": _("Send the If-Match header with the ETag of the record that you read."),
    "body_too_large": _("The body is larger than 1 MiB. Send a smaller one."),
    "body_timeout": _("The request body did not arrive in time. Send the request again."),
    "unsupported_media_type": _("Send the request body as application/json."),
    "invalid": _(
        "Each entry in the errors array names an invalid value (by pointer, "
        "parameter or header) and the problem."
    ),
    "idempotency_key_reused": _(
        "This Idempotency-Key was already used with a different body. Use a new key for each request body."
    ),
    "archived": _("The record is archived. Restore it first."),
    "invalid_bundle": _("Nothing was pushed. See the detail field for the rejected file."),
    "invalid_invitation": _("The invitation is invalid, was already used or has expired. Ask for a new one."),
    "key_revoked": _("The key was revoked and cannot be rotated. Create a new one."),
    "key_expired": _("The key has expired and cannot be rotated. Create a new one."),
    "endpoint_disabled": _("The webhook endpoint is disabled. Enable it first."),
    "limit_reached": _("The workspace has too many webhook endpoints. Delete one first."),
    "no_signing_key": _("This installation has no signing key. Contact your operator."),
    "invalid_file_status": _("The file's status does not allow this. See the detail field for the reason."),
    "not_copyable": _("This skill cannot be copied. See the detail field for the reason."),
    "not_erasable": _("Only memories and user profiles can be erased, and only once."),
    "not_exportable": _("This record cannot be written as a file. See the detail field for the reason."),
    "not_a_push_source": _("This source reads a folder, so files cannot be pushed to it."),
    "channel_not_enabled": _("The agent is not on this channel. Choose one of its channels."),
    "digest_mismatch": _("The rebuilt text differs from the recorded one. Verify the ledger."),
    "not_key_owner": _("Only the creator of an admin key can rotate it. Revoke the key instead."),
    "no_version_at_time": _("There was no version at that time, or the label did not point to one."),
    "nothing_to_release": _("There are no newer versions to release."),
    "release_closed": _("The release is already approved, released, rejected, withdrawn or out of date."),
    "release_voided": _("The release is out of date because a prompt changed. Request it again."),
    "expired": _("The row is older than the ledger's retention period and was deleted."),
    "unknown_version": _("The version belongs to another prompt."),
    "unknown_ledger_entry": _("The ledger row does not exist."),
    "unknown_label": _("The prompt does not have this label."),
    "call_quota_exceeded": _(
        "The workspace, or the person that it counts for, has used up the daily quota of call data and "
        "pushed files. Wait for the time given in the Retry-After header, or send less data. Fetches without "
        "call data are still served."
    ),
    "daily_limit_reached": _(
        "The limit of the day is used up; the detail field names it and the operator's setting. Wait for the "
        "time given in the Retry-After header."
    ),
    "workspace_limit_reached": _(
        "As many workspaces count for the user of the key as the operator allows. Contact your operator."
    ),
    "rate_limited": _(
        "Wait for the time given in the Retry-After header, then retry. The "
        "RateLimit-Policy header gives the limit per minute."
    ),
    "server_error": _("Something went wrong on the server. Report it with the request ID."),
    "storage_full": _("The database disk is full. Nothing was changed. The operator must free disk space."),
    "unavailable": _("The ledger is unavailable, so no prompt can be served. Use your last copy and retry."),
    "draft_changed": _("The draft was deleted or changed in the meantime. Read it again."),
    "too_many_drafts": _(
        "There are too many drafts, or this draft is too long. Discard some drafts or shorten this one."
    ),
}


@cache
def get_openapi_document() -> dict[str, Any]:
    return build_openapi_document(urlpatterns, settings.PUBLIC_URL)


@cache
def render_openapi() -> bytes:
    return json.dumps(get_openapi_document(), ensure_ascii=False, separators=(",", ":")).encode()


@cache
def get_openapi_digest() -> str:
    return sha256(render_openapi()).hexdigest()


def resolve_reference(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the target of a reference, merged with the other keys of the value. Other values stay as is."""
    if "$ref" not in value:
        return value
    target: Any = get_openapi_document()
    for name in value["$ref"].removeprefix("#/").split("/"):
        target = target[name]
    target = extend_base(target) if "allOf" in target else target
    return {**target, **{name: inner for name, inner in value.items() if name != "$ref"}}


def extend_base(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema with the fields of the one that it extends: that of PUT extends that of PATCH."""
    base = resolve_reference(schema["allOf"][0])
    return {
        **base,
        **schema,
        "properties": {**base["properties"], **schema.get("properties", {})},
        "required": [*base.get("required", ()), *schema.get("required", ())],
    }


@login_not_required
@require_safe
def openapi_json(request: HttpRequest) -> HttpResponse:
    response = HttpResponse(render_openapi(), content_type="application/json")
    response["Cache-Control"] = "public, max-age=300"
    response["Access-Control-Allow-Origin"] = "*"
    # A weak ETag, because the document may be compressed.
    response["ETag"] = f"W/{quote_etag(get_openapi_digest())}"
    return get_conditional_response(request, etag=response["ETag"], response=response) or response


HTTP_METHODS = ("get", "post", "put", "patch", "delete")
TYPE_LABELS = {"string": "text", "integer": "whole number", "boolean": "true or false", "array": "list"}


@dataclass(frozen=True)
class FieldDoc:
    """A parameter or a field of a request or response body."""

    name: str
    kind: str
    is_required: bool
    description: str


@dataclass(frozen=True)
class OperationDoc:
    """An operation as the API reference shows it."""

    id: str
    method: str
    path: str
    summary: str
    note: str
    parameters: list[FieldDoc]
    body: list[FieldDoc]
    response: list[FieldDoc]
    status: str
    problems: list[tuple[str, str]]
    curl: str


@dataclass
class OperationGroup:
    """A section of the API reference: the operations with the same tag."""

    name: str
    operations: list[OperationDoc] = field(default_factory=list)


@cache
def list_operation_groups() -> list[OperationGroup]:
    problems = {
        operation.operation_id: get_problem_codes(pattern, operation)
        for pattern in urlpatterns
        for operation in get_operations(pattern).values()
    }
    groups: dict[str, OperationGroup] = {}
    for path, item in get_openapi_document()["paths"].items():
        for method in HTTP_METHODS:
            if operation := item.get(method):
                tag = operation["tags"][0]
                group = groups.setdefault(tag, OperationGroup(tag))
                codes = problems[operation["operationId"]]
                group.operations.append(
                    build_operation_doc(method, path, item.get("parameters", []), operation, codes)
                )
    return list(groups.values())


def build_operation_doc(
    method: str,
    path: str,
    path_parameters: list[dict[str, Any]],
    operation: Mapping[str, Any],
    problems: Mapping[int, str],
) -> OperationDoc:
    body = get_body_media(operation).get("schema")
    responses = {status: resolve_reference(response) for status, response in operation["responses"].items()}
    success = next(status for status in responses if status < "300")
    response = responses[success].get("content", {}).get("application/json", {}).get("schema")
    return OperationDoc(
        id=operation["operationId"],
        method=method.upper(),
        path=path,
        summary=operation["summary"],
        note=f"{operation['description']} {describe_security(operation)}",
        parameters=[
            build_parameter_doc(resolve_reference(parameter))
            for parameter in [*path_parameters, *operation.get("parameters", [])]
        ],
        body=list(list_field_docs(body)) if body else [],
        response=list(list_field_docs(response)) if response else [],
        status=success,
        problems=[(str(status), f"{PROBLEM_TITLES[code]}.") for status, code in sorted(problems.items())],
        curl=build_curl_command(method.upper(), path, operation, body),
    )


def describe_security(operation: Mapping[str, Any]) -> str:
    """Return which verb a key needs, and whether the operation is for admin keys only."""
    document = get_openapi_document()
    [scheme] = operation.get("security", document["security"])[0]
    return str(document["components"]["securitySchemes"][scheme]["description"])


def build_parameter_doc(parameter: Mapping[str, Any]) -> FieldDoc:
    schema = resolve_reference(parameter["schema"])
    descriptions = [parameter.get("description", ""), schema.get("description", ""), describe_bounds(schema)]
    return FieldDoc(
        f"{parameter['name']} ({parameter['in']})",
        describe_type(schema),
        parameter.get("required", False),
        " ".join(filter(None, descriptions)),
    )


def list_field_docs(schema: Mapping[str, Any], prefix: str = "") -> Iterator[FieldDoc]:
    """Yield the fields of an object and of its nested objects, with paths such as `steps[].title`."""
    schema = resolve_reference(schema)
    if schema.get("type") == "array":
        yield from list_field_docs(schema["items"], f"{prefix}[]")
        return
    required = set(schema.get("required", ()))
    for name, reference in schema.get("properties", {}).items():
        field_schema = resolve_reference(reference)
        path = f"{prefix}.{name}" if prefix else name
        yield FieldDoc(
            path,
            describe_type(field_schema),
            name in required,
            " ".join(filter(None, [field_schema.get("description", ""), describe_bounds(field_schema)])),
        )
        inner = resolve_reference(field_schema.get("items", field_schema))
        if inner.get("properties"):
            yield from list_field_docs(inner, f"{path}[]" if "items" in field_schema else path)


def describe_type(schema: Mapping[str, Any]) -> str:
    schema = resolve_reference(schema)
    if "anyOf" in schema:
        return " or ".join(describe_type(option) for option in schema["anyOf"])
    if "enum" in schema:
        return "one of: " + ", ".join(map(str, schema["enum"]))
    kinds = schema.get("type", "anything")
    names = [kinds] if isinstance(kinds, str) else kinds
    if schema.get("format") == "date-time":
        names = ["moment" if name == "string" else name for name in names]
    return " or ".join(TYPE_LABELS.get(name, name) for name in names)


def describe_bounds(schema: Mapping[str, Any]) -> str:
    if limit := schema.get("maxLength"):
        return f"At most {limit:,} characters."
    if schema.get("type") == "integer" and schema.get("maximum", 2**31) < 2**31 - 1:
        return f"{schema.get('minimum', 0):,} to {schema['maximum']:,}."
    return f"At most {schema['maxItems']:,}." if "maxItems" in schema else ""


def build_curl_command(
    method: str, path: str, operation: Mapping[str, Any], body: Mapping[str, Any] | None
) -> str:
    parts = [f"curl -X {method} {settings.PUBLIC_URL}{path}", "-H 'Authorization: Bearer $DRAMATIS_KEY'"]
    parameters = map(resolve_reference, operation.get("parameters", []))
    if any(parameter["name"] == "If-Match" for parameter in parameters):
        parts.append("""-H 'If-Match: "1"'""")
    if body is not None:
        example = get_body_media(operation).get("example") or build_example_body(body)
        parts += ["-H 'Content-Type: application/json'", f"-d '{json.dumps(example, ensure_ascii=False)}'"]
    return " \\\n  ".join(parts).replace(
        "'Authorization: Bearer $DRAMATIS_KEY'", '"Authorization: Bearer $DRAMATIS_KEY"'
    )


def get_body_media(operation: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return schema and example of the JSON request body; empty without one."""
    body = resolve_reference(operation.get("requestBody", {}))
    media: Mapping[str, Any] = body.get("content", {}).get("application/json", {})
    return media


def build_example_body(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return example values for the required fields, or for the first field if none is required."""
    schema = resolve_reference(schema)
    fields = schema.get("properties", {})
    names = schema.get("required") or list(fields)[:1]
    return {name: build_example_value(name, fields[name]) for name in names}


def build_example_value(name: str, schema: Mapping[str, Any]) -> Any:
    schema = resolve_reference(schema)
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "array":
        return [build_example_value(name, schema["items"])]
    if kind == "object":
        return build_example_body(schema)
    return {"integer": 1, "boolean": True}.get(str(kind), name)


@cache
def render_operations(language: str) -> SafeString:
    """Render the operations once per process and language, because that takes half a second."""
    return render_to_string("api/_operations.html", {"groups": list_operation_groups()})


@login_not_required
@require_safe
def api_reference(request: HttpRequest) -> HttpResponseBase:
    if settings.SESSION_COOKIE_NAME in request.COOKIES:
        return render(request, "api/docs.html", build_reference_context())
    return build_visitor_response(request)


def build_reference_context() -> dict[str, Any]:
    groups = list_operation_groups()
    count = sum(len(group.operations) for group in groups)
    return {"groups": groups, "count": count, "operations": render_operations(get_language() or "")}


def build_visitor_response(request: HttpRequest) -> HttpResponseBase:
    """Return the page for visitors without a session, which is the same for all of them, with an ETag.

    It has no form, so it needs no CSRF token, which would differ in each response.
    """
    response = render(request, "api/docs.html", build_reference_context() | {"csrf_token": ""})
    response["ETag"] = quote_etag(sha256(response.content).hexdigest())
    response["Cache-Control"] = "no-cache"
    patch_vary_headers(response, ("Cookie",))
    return get_conditional_response(request, etag=response["ETag"], response=response) or response


@login_not_required
@require_safe
def error_reference(request: HttpRequest) -> HttpResponse:
    problems = [(code, title, PROBLEM_ADVICE[code]) for code, title in sorted(PROBLEM_TITLES.items())]
    return render(request, "api/errors.html", {"problems": problems})
