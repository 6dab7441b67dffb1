"""The gate of the API: key, budget, permission, query, body, condition; then the operation itself."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, ClassVar

import structlog
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from rest_framework.request import Request
from rest_framework.views import APIView

from personas.api.authentication import Caller, caller_of
from personas.api.exception_handler import problem_of
from personas.api.idempotency import HEADER, carried_out_once
from personas.api.operations import Call, Operation
from personas.api.problems import CONTENT_TYPE, Problem, ProblemError
from personas.api.query_params import read_query
from personas.api.rate_limits import take_from_budgets
from personas.api.request_body import body_of
from personas.api.responses import Answer
from personas.api_keys.last_used import used

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
        caller = caller_of(request.headers, request.META.get("QUERY_STRING", ""))
        used(caller.workspace.pk, caller.key.pk, timezone.now())
        paid = take_from_budgets(caller.key.pk, caller.workspace.pk, operation.paid_from)
        refuse_unless_allowed(caller, operation)
        call = self.call(request, operation, caller)
        answer = self.carried_out(operation, call, kwargs)
        return sent(answer, paid)

    get = post = put = patch = delete = handle

    def call(self, request: Request, operation: Operation, caller: Caller) -> Call:
        return Call(
            caller=caller,
            body=body_of(request, operation.checked_body) if operation.checked_body else None,
            query=read_query(request.query_params, operation.query, operation.needed),
            headers=request.headers,
            request_id=request_id_of(request),
            path=request.path,
        )

    def carried_out(self, operation: Operation, call: Call, named: dict[str, Any]) -> Answer:
        name = call.headers.get(HEADER)
        if name is None or not operation.is_retryable:
            return operation.run(call, **named)
        # Of this key alone: what another was answered may not be for it.
        said = f"{call.caller.key.pk} {self.request.method} {call.path}"
        route = sha256(said.encode()).hexdigest()
        body = self.request.body
        return carried_out_once(call.workspace, route, name, body, lambda: operation.run(call, **named))

    def handle_exception(self, exc: Exception) -> HttpResponse:  # type: ignore[override]  # ours is no Response
        return refused(problem_of(exc), self.request, exc)

    def http_method_not_allowed(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        raise ProblemError(
            Problem(
                405,
                "method_not_allowed",
                "This address does not take that method.",
                headers={"Allow": ", ".join(self.allowed_methods)},
            )
        )


def refuse_unless_allowed(caller: Caller, operation: Operation) -> None:
    if not caller.may(operation.permission, is_for_bots=operation.bots):
        raise ProblemError(Problem(403, "out_of_scope", "This key may not be used for that."))


def sent(answer: Answer, more: Mapping[str, str]) -> HttpResponse:
    response = HttpResponse(answer.body, status=answer.status, content_type=answer.content_type)
    if answer.status in {204, 304}:
        del response["Content-Type"]
    for name, said in {"Cache-Control": "private, no-store", **answer.headers, **more}.items():
        response[name] = said
    patch_vary_headers(response, ["Authorization", "Accept"])
    return response


def refused(
    problem: Problem, request: HttpRequest | Request, error: BaseException | None = None
) -> HttpResponse:
    if problem.status >= 500:
        log.error("api_failed", status=problem.status, error=type(error).__name__, exc_info=error)
    body = problem.body(request_id_of(request))
    response = HttpResponse(body, status=problem.status, content_type=CONTENT_TYPE)
    for name, said in problem.headers.items():
        response[name] = said
    response["Cache-Control"] = "no-store"
    return response


def request_id_of(request: HttpRequest | Request) -> str:
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


def view_of(pattern: URLPattern) -> type[ApiView] | None:
    """The class behind an address of ours, for whoever publishes or checks it."""
    found: HttpResponseBase | Any = getattr(pattern.callback, "cls", None)
    return found if isinstance(found, type) and issubclass(found, ApiView) else None
