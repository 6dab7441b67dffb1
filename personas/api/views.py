"""Base view of the API: authentication, rate limit, permission, query and body checks, then the operation."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from functools import cache
from hashlib import sha256
from typing import Any, ClassVar

import structlog
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.utils.http import http_date
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from core.request_body import BodyReadError, mark_body_authenticated
from core.text.timestamps import parse_timestamp
from personas.api.authentication import ApiClient, authenticate
from personas.api.etags import needs_revalidation, revalidate_response
from personas.api.exception_handler import (
    exception_to_problem,
    missing_verb_problem,
    out_of_scope_problem,
    validation_problem,
)
from personas.api.idempotency import IDEMPOTENCY_HEADER, run_idempotent
from personas.api.key_limits import check_key_limits, limit_changes
from personas.api.operations import JSON_TYPE, ApiRequest, Operation
from personas.api.problems import PROBLEM_CONTENT_TYPE, FieldError, Problem, ProblemError
from personas.api.rate_limits import charge_rate_limit
from personas.api.request_body import PATCH_TYPES, parse_json_body, parse_text_body
from personas.api.responses import ApiResponse
from personas.api.schema import Schema
from personas.api.validation import build_validator, find_schema_errors
from personas.api_keys.last_used import record_key_use
from personas.api_keys.scopes import get_key_verbs, get_required_verb


def parse_query_params(
    query: QueryDict, schemas: Mapping[str, Schema], required: Sequence[str] = ()
) -> dict[str, Any]:
    """Validate query parameters and return their values; missing parameters get their defaults.

    Unknown and repeated parameters are errors.
    """
    errors = [
        FieldError("This parameter is required.", parameter=name) for name in required if name not in query
    ]
    values: dict[str, Any] = {
        name: schema["default"] for name, schema in schemas.items() if "default" in schema
    }
    for name, texts in query.lists():
        if name not in schemas:
            errors.append(FieldError("Unknown parameter.", parameter=name[:80]))
        elif len(texts) > 1:
            errors.append(FieldError("Send this parameter only once.", parameter=name))
        else:
            value = convert_param(texts[0], schemas[name])
            problems = find_schema_errors(build_validator(schemas[name]), value)
            errors += [FieldError(problem.detail, parameter=name) for problem in problems]
            values[name] = value
    if errors:
        raise ProblemError(validation_problem(errors))
    return {name: convert_datetime_param(value, schemas[name]) for name, value in values.items()}


def convert_param(text: str, schema: Schema) -> Any:
    """Convert the text of a parameter to the type in its schema.

    Text that cannot be converted is returned unchanged; the schema validation that follows rejects it.
    """
    if schema.get("type") == "integer":
        digits = text.removeprefix("-")
        return int(text) if digits.isascii() and digits.isdecimal() and len(digits) <= 19 else text
    if schema.get("type") == "boolean":
        return {"true": True, "false": False}.get(text, text)
    return text


def convert_datetime_param(value: Any, schema: Schema) -> Any:
    if schema.get("format") == "date-time" and isinstance(value, str):
        return parse_timestamp(value)
    return value


log = structlog.get_logger(__name__)
SAFE_METHODS = ("GET", "HEAD")
NOT_FOR_BOTS_DETAIL = "This operation requires an admin key. This is a bot key."
NO_TEXT_FOR_BOTS_DETAIL = (
    "Bot keys get text only with what is released and recorded in the ledger: fetch or render the prompt or "
    "fetch its skills, or use an admin key with the verb `read`."
)
ACCEPTS_JSON = frozenset({"*/*", "application/json"})


class ApiView(APIView):
    """View for one URL of the API. `operations` holds the operation for each HTTP method."""

    operations: ClassVar[Mapping[str, Operation]] = {}
    authentication_classes = ()
    permission_classes = ()

    def handle(self, request: Request, **kwargs: Any) -> HttpResponse | StreamingHttpResponse:
        operation = self.operations[str(request.method).replace("HEAD", "GET")]
        # The body is not read before the key is checked: a client without a key must not block a thread.
        caller = authenticate(request.headers, request.META.get("QUERY_STRING", ""))
        mark_body_authenticated(request)
        record_key_use(caller.workspace.pk, caller.key.pk, timezone.now())
        rate_limit_headers = charge_rate_limit(
            caller.key.pk, caller.workspace.pk, operation.rate_limit_budget
        )
        check_operation_permission(caller, operation)
        call = self.build_request(request, operation, caller)
        with limit_changes(caller, operation.touches):
            response = self.run_operation(operation, call, kwargs)
        if request.method in SAFE_METHODS and needs_revalidation(response):
            response = revalidate_response(response, request.headers.get("If-None-Match", ""))
        return build_http_response(response, rate_limit_headers)

    get = post = put = patch = delete = handle

    def perform_content_negotiation(self, request: Request, force: bool = False) -> tuple[BaseRenderer, str]:
        """Negotiate as REST framework does, but skip it if there is only JSON and the client accepts it."""
        if (
            self.renderer_classes == (JSONRenderer,)
            and request.META.get("HTTP_ACCEPT", "*/*") in ACCEPTS_JSON
        ):
            return JSONRenderer(), JSONRenderer.media_type
        renderer, media_type = super().perform_content_negotiation(request, force)
        return renderer, str(media_type)

    def get_patch_headers(self) -> dict[str, str]:
        return {"Accept-Patch": ", ".join(PATCH_TYPES)} if "PATCH" in self.operations else {}

    def build_request(self, request: Request, operation: Operation, caller: ApiClient) -> ApiRequest:
        return ApiRequest(
            caller=caller,
            body=parse_body(request, operation),
            query=parse_query_params(request.query_params, operation.query, operation.required_params),
            headers=request.headers,
            request_id=get_request_id(request),
            path=request.path,
            method=str(request.method),
        )

    def run_operation(self, operation: Operation, call: ApiRequest, kwargs: dict[str, Any]) -> ApiResponse:
        name = call.headers.get(IDEMPOTENCY_HEADER)
        if name is None or not operation.is_retryable:
            return operation.run(call, *kwargs.values())
        # Include the API key in the scope of stored responses: another key might not be allowed to see them.
        scope = f"{call.caller.key.pk} {self.request.method} {call.path}"
        route = sha256(scope.encode()).hexdigest()
        content = [call.body, sorted(self.request.GET.lists())]
        return run_idempotent(
            call.workspace, route, name, content, lambda: operation.run(call, *kwargs.values())
        )

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Add the headers of a deprecated operation, also to error responses."""
        finalized = super().finalize_response(request, response, *args, **kwargs)
        if operation := self.operations.get(str(request.method).replace("HEAD", "GET")):
            set_deprecation_headers(finalized, operation, self.kwargs)
        return finalized

    def handle_exception(self, exc: Exception) -> HttpResponse:  # type: ignore[override]  # ours is no Response
        return problem_response(exception_to_problem(exc), self.request, exc)

    def http_method_not_allowed(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        raise ProblemError(
            Problem(
                405,
                "method_not_allowed",
                "This URL does not support that method.",
                headers={"Allow": ", ".join(self.allowed_methods), **self.get_patch_headers()},
            )
        )


def parse_body(request: Request, operation: Operation) -> Any:
    if operation.body_validator is None:
        return None
    if operation.body_type != JSON_TYPE:
        return parse_text_body(request, operation.body_type, operation.body_validator)
    return parse_json_body(request, operation.body_validator, operation.read_only_fields)


def check_operation_permission(caller: ApiClient, operation: Operation) -> None:
    is_allowed = operation.is_for_all_keys or caller.has_permission(
        operation.permission, is_for_bots=operation.bots
    )
    if not is_allowed:
        raise ProblemError(missing_permission_problem(caller, operation))
    check_key_limits(caller, operation.touches, is_write=operation.is_write)


def missing_permission_problem(caller: ApiClient, operation: Operation) -> Problem:
    """Tell what the key lacks: the kind of key, a verb, or the role of the member that it acts for."""
    if caller.is_bot and not operation.bots:
        return out_of_scope_problem(NOT_FOR_BOTS_DETAIL if operation.is_write else NO_TEXT_FOR_BOTS_DETAIL)
    verb = get_required_verb(operation.permission, caller.key.kind)
    if verb in get_key_verbs(caller.key.scopes, caller.key.kind):
        return out_of_scope_problem("The member that this key acts for does not have the required role.")
    return missing_verb_problem(verb)


def build_http_response(
    answer: ApiResponse, extra_headers: Mapping[str, str]
) -> HttpResponse | StreamingHttpResponse:
    http_response: HttpResponse | StreamingHttpResponse = (
        HttpResponse(answer.body, status=answer.status, content_type=answer.content_type)
        if answer.stream is None
        else StreamingHttpResponse(answer.stream, status=answer.status, content_type=answer.content_type)
    )
    if answer.status in {204, 304}:
        del http_response["Content-Type"]
    for name, value in {"Cache-Control": "private, no-store", **answer.headers, **extra_headers}.items():
        http_response[name] = value
    patch_vary_headers(http_response, ["Authorization", "Accept"])
    return http_response


def problem_response(
    problem: Problem, request: HttpRequest | Request, error: BaseException | None = None
) -> HttpResponse:
    # Bodies that could not be read are not logged as errors, so that a flood of them does not fill the log.
    if problem.status >= 500 and not isinstance(error, BodyReadError):
        log.error("api_request_failed", status=problem.status, error=type(error).__name__, exc_info=error)
    body = problem.to_bytes(get_request_id(request))
    response = HttpResponse(body, status=problem.status, content_type=PROBLEM_CONTENT_TYPE)
    for name, value in problem.headers.items():
        response[name] = value
    response["Cache-Control"] = "no-store"
    return response


def set_deprecation_headers(
    response: HttpResponseBase, operation: Operation, kwargs: Mapping[str, Any]
) -> None:
    """Set Deprecation (RFC 9745), Sunset (RFC 8594) and Link to what replaces the operation."""
    if operation.deprecated_at is None:
        return
    response["Deprecation"] = f"@{to_timestamp(operation.deprecated_at)}"
    links = [f'</api/v1/docs/#{operation.operation_id}>; rel="deprecation"; type="text/html"']
    if operation.sunset_at:
        response["Sunset"] = http_date(to_timestamp(operation.sunset_at))
    if operation.successor:
        links.append(f'</api/v1/{operation.successor.format(**kwargs)}>; rel="successor-version"')
    response["Link"] = ", ".join([*([response["Link"]] if response.has_header("Link") else []), *links])


def to_timestamp(day: date) -> int:
    return int(datetime.combine(day, time(), UTC).timestamp())


def get_request_id(request: HttpRequest | Request) -> str:
    return str(getattr(request, "request_id", ""))


def endpoint(route: str, name: str, **operations: Operation) -> URLPattern:
    """Return the URL pattern of a new view with these operations, by HTTP method. Other methods get 405."""
    by_method = {method.upper(): operation for method, operation in operations.items()}
    allowed = [*operations, *(["head"] if "get" in operations else [])]
    view: type[ApiView] = type(
        f"{name.title().replace('-', '')}View",
        (ApiView,),
        {
            "operations": by_method,
            "http_method_names": allowed,
            "renderer_classes": list_renderers(operations.values()),
            "__doc__": "An API URL.",
        },
    )
    return path(route, login_not_required(view.as_view()), name=name)


def list_renderers(operations: Iterable[Operation]) -> tuple[type[BaseRenderer], ...]:
    """Return the renderers of a view, for content negotiation. Responses are already rendered."""
    media_types = dict.fromkeys(name for operation in operations for name in operation.extra_content)
    return (*map(build_renderer, media_types), JSONRenderer)


@cache
def build_renderer(media_type: str) -> type[BaseRenderer]:
    renderer: type[BaseRenderer] = type("MediaRenderer", (BaseRenderer,), {"media_type": media_type})
    return renderer


def get_api_view(pattern: URLPattern) -> type[ApiView] | None:
    """Return the ApiView class of a URL pattern, or None for another view.

    The OpenAPI document and tests use this to list all operations.
    """
    view: HttpResponseBase | Any = getattr(pattern.callback, "cls", None)
    return view if isinstance(view, type) and issubclass(view, ApiView) else None
