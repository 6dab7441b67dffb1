"""The gate of the API: key, budget, permission, query, body, condition; then the operation itself."""

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
    """The values by name, with defaults; a word nobody knows is a mistake that should show."""
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
    """The word as its kind; what cannot be is left a word, and refused as such."""
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
    """One address of the API; what each method does stands in `operations`."""

    operations: ClassVar[Mapping[str, Operation]] = {}
    authentication_classes = ()
    permission_classes = ()

    def handle(self, request: Request, **kwargs: Any) -> HttpResponse:
        operation = self.operations[str(request.method).replace("HEAD", "GET")]
        # A body that is refused unread would break the connection for the next call on it.
        _ = request.body
        caller = authenticate(request.headers, request.META.get("QUERY_STRING", ""))
        record_key_use(caller.workspace.pk, caller.key.pk, timezone.now())
        paid = charge_rate_limit(caller.key.pk, caller.workspace.pk, operation.paid_from)
        check_operation_permission(caller, operation)
        call = self.call(request, operation, caller)
        answer = self.carried_out(operation, call, kwargs)
        return build_http_response(answer, paid)

    get = post = put = patch = delete = handle

    def call(self, request: Request, operation: Operation, caller: ApiClient) -> ApiRequest:
        return ApiRequest(
            caller=caller,
            body=parse_json_body(request, operation.checked_body) if operation.checked_body else None,
            query=parse_query_params(request.query_params, operation.query, operation.needed),
            headers=request.headers,
            request_id=get_request_id(request),
            path=request.path,
        )

    def carried_out(self, operation: Operation, call: ApiRequest, named: dict[str, Any]) -> ApiResponse:
        name = call.headers.get(IDEMPOTENCY_HEADER)
        if name is None or not operation.is_retryable:
            return operation.run(call, **named)
        # Of this key alone: what another was answered may not be for it.
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
    if not caller.may(operation.permission, is_for_bots=operation.bots):
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
    body = problem.body(get_request_id(request))
    response = HttpResponse(body, status=problem.status, content_type=PROBLEM_CONTENT_TYPE)
    for name, said in problem.headers.items():
        response[name] = said
    response["Cache-Control"] = "no-store"
    return response


def get_request_id(request: HttpRequest | Request) -> str:
    return str(getattr(request, "request_id", ""))


def endpoint(route: str, name: str, **operations: Operation) -> URLPattern:
    """An address with the operations of its methods; everything else there is answered 405."""
    said = {method.upper(): operation for method, operation in operations.items()}
    allowed = [*operations, *(["head"] if "get" in operations else [])]
    view: type[ApiView] = type(
        f"{name.title().replace('-', '')}View",
        (ApiView,),
        {"operations": said, "http_method_names": allowed, "__doc__": "An address of the API."},
    )
    return path(route, login_not_required(view.as_view()), name=name)


def get_api_view(pattern: URLPattern) -> type[ApiView] | None:
    """The class behind an address of ours, for whoever publishes or checks it."""
    found: HttpResponseBase | Any = getattr(pattern.callback, "cls", None)
    return found if isinstance(found, type) and issubclass(found, ApiView) else None
