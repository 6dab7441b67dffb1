"""Base view of the API: authenticates, charges the rate limit, checks permission, query and body, runs."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, ClassVar

import structlog
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from rest_framework.request import Request
from rest_framework.views import APIView

from personas.api.authentication import ApiClient, authenticate
from personas.api.exception_handler import exception_to_problem, validation_problem
from personas.api.idempotency import IDEMPOTENCY_HEADER, run_idempotent
from personas.api.operations import ApiRequest, Operation
from personas.api.problems import PROBLEM_CONTENT_TYPE, FieldError, Problem, ProblemError
from personas.api.rate_limits import charge_rate_limit
from personas.api.request_body import parse_json_body
from personas.api.responses import ApiResponse
from personas.api.schema import Schema
from personas.api.validation import build_validator, find_schema_errors, parse_utc_datetime
from personas.api_keys.last_used import record_key_use


def parse_query_params(
    said: QueryDict, known: Mapping[str, Schema], needed: Sequence[str] = ()
) -> dict[str, Any]:
    """Validate the query parameters and return their values with defaults; an unknown one is an error."""
    wrong = [FieldError("This is needed.", parameter=name) for name in needed if name not in said]
    values: dict[str, Any] = {name: shape["default"] for name, shape in known.items() if "default" in shape}
    for name, given in said.lists():
        if name not in known:
            wrong.append(FieldError("There is no such parameter here.", parameter=name[:80]))
        elif len(given) > 1:
            wrong.append(FieldError("Give this once.", parameter=name))
        else:
            value = convert_param(given[0], known[name])
            problems = find_schema_errors(build_validator(known[name]), value)
            wrong += [FieldError(problem.detail, parameter=name) for problem in problems]
            values[name] = value
    if wrong:
        raise ProblemError(validation_problem(wrong))
    return {name: convert_datetime_param(value, known[name]) for name, value in values.items()}


def convert_param(word: str, shape: Schema) -> Any:
    """Convert a parameter to the type of its schema; text that cannot be converted then fails validation."""
    if shape.get("type") == "integer":
        digits = word.removeprefix("-")
        return int(word) if digits.isascii() and digits.isdecimal() and len(digits) <= 19 else word
    if shape.get("type") == "boolean":
        return {"true": True, "false": False}.get(word, word)
    return word


def convert_datetime_param(value: Any, shape: Schema) -> Any:
    if shape.get("format") == "date-time" and isinstance(value, str):
        return parse_utc_datetime(value)
    return value


log = structlog.get_logger(__name__)
METHODS = ("get", "post", "put", "patch", "delete")


class ApiView(APIView):
    """One URL of the API; `operations` declares its methods."""

    operations: ClassVar[Mapping[str, Operation]] = {}
    authentication_classes = ()
    permission_classes = ()

    def handle(self, request: Request, **kwargs: Any) -> HttpResponse:
        operation = self.operations[str(request.method).replace("HEAD", "GET")]
        # Read the body first: rejecting a request with an unread body would break a keep-alive connection.
        _ = request.body
        caller = authenticate(request.headers, request.META.get("QUERY_STRING", ""))
        record_key_use(caller.workspace.pk, caller.key.pk, timezone.now())
        paid = charge_rate_limit(caller.key.pk, caller.workspace.pk, operation.rate_limit_budget)
        check_operation_permission(caller, operation)
        call = self.build_request(request, operation, caller)
        answer = self.run_operation(operation, call, kwargs)
        return build_http_response(answer, paid)

    get = post = put = patch = delete = handle

    def build_request(self, request: Request, operation: Operation, caller: ApiClient) -> ApiRequest:
        return ApiRequest(
            caller=caller,
            body=parse_json_body(request, operation.body_validator) if operation.body_validator else None,
            query=parse_query_params(request.query_params, operation.query, operation.required_params),
            headers=request.headers,
            request_id=get_request_id(request),
            path=request.path,
        )

    def run_operation(self, operation: Operation, call: ApiRequest, named: dict[str, Any]) -> ApiResponse:
        name = call.headers.get(IDEMPOTENCY_HEADER)
        if name is None or not operation.is_retryable:
            return operation.run(call, **named)
        # Stored responses belong to one API key: another key may not be allowed to see them.
        said = f"{call.caller.key.pk} {self.request.method} {call.path}"
        route = sha256(said.encode()).hexdigest()
        body = self.request.body
        return run_idempotent(call.workspace, route, name, body, lambda: operation.run(call, **named))

    def handle_exception(self, exc: Exception) -> HttpResponse:  # type: ignore[override]  # ours is no Response
        return problem_response(exception_to_problem(exc), self.request, exc)

    def http_method_not_allowed(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        raise ProblemError(
            Problem(
                405,
                "method_not_allowed",
                "This address does not take that method.",
                headers={"Allow": ", ".join(self.allowed_methods)},
            )
        )


def check_operation_permission(caller: ApiClient, operation: Operation) -> None:
    if not caller.has_permission(operation.permission, is_for_bots=operation.bots):
        raise ProblemError(Problem(403, "out_of_scope", "This key may not be used for that."))


def build_http_response(answer: ApiResponse, more: Mapping[str, str]) -> HttpResponse:
    response = HttpResponse(answer.body, status=answer.status, content_type=answer.content_type)
    if answer.status in {204, 304}:
        del response["Content-Type"]
    for name, said in {"Cache-Control": "private, no-store", **answer.headers, **more}.items():
        response[name] = said
    patch_vary_headers(response, ["Authorization", "Accept"])
    return response


def problem_response(
    problem: Problem, request: HttpRequest | Request, error: BaseException | None = None
) -> HttpResponse:
    if problem.status >= 500:
        log.error("api_request_failed", status=problem.status, error=type(error).__name__, exc_info=error)
    body = problem.to_bytes(get_request_id(request))
    response = HttpResponse(body, status=problem.status, content_type=PROBLEM_CONTENT_TYPE)
    for name, said in problem.headers.items():
        response[name] = said
    response["Cache-Control"] = "no-store"
    return response


def get_request_id(request: HttpRequest | Request) -> str:
    return str(getattr(request, "request_id", ""))


def endpoint(route: str, name: str, **operations: Operation) -> URLPattern:
    """Return the URL pattern of a view with these operations by method; other methods get 405."""
    said = {method.upper(): operation for method, operation in operations.items()}
    allowed = [*operations, *(["head"] if "get" in operations else [])]
    view: type[ApiView] = type(
        f"{name.title().replace('-', '')}View",
        (ApiView,),
        {"operations": said, "http_method_names": allowed, "__doc__": "An address of the API."},
    )
    return path(route, login_not_required(view.as_view()), name=name)


def get_api_view(pattern: URLPattern) -> type[ApiView] | None:
    """Return the ApiView class of a URL pattern, or None; used by the OpenAPI document and tests."""
    found: HttpResponseBase | Any = getattr(pattern.callback, "cls", None)
    return found if isinstance(found, type) and issubclass(found, ApiView) else None
