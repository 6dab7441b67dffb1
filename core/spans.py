"""Spans of OpenTelemetry, written only if DRAMATIS_TRACING is set.

The packages are optional (requirements/tracing.txt) and imported with the first span: a process without
tracing does not load them. The thread of the exporter starts with the first span too, which is after the fork
of the server. The exporter is configured by the standard variables, such as OTEL_EXPORTER_OTLP_ENDPOINT.
"""

import os
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import structlog

log = structlog.get_logger(__name__)

SERVICE_NAME = "dramatis"
AttributeValue = str | int | bool


class SpanTools(NamedTuple):
    """What is needed to write a span: the tracer, the propagator, and values of the API."""

    tracer: Any
    propagator: Any
    server_kind: Any
    error_status: Any


def record_span(
    name: str,
    started_at: int,
    attributes: Mapping[str, AttributeValue],
    *,
    traceparent: str = "",
    error: str = "",
) -> None:
    """Write a span from `started_at` (Unix nanoseconds) until now, as a child of the caller's span if any.

    `error` names what failed. A span is never a reason for a request to fail: without the packages, the first
    call logs an error and the others do nothing. The exporter drops spans if its queue is full.
    """
    tools = load_span_tools()
    if tools is None:
        return
    context = tools.propagator.extract({"traceparent": traceparent}) if traceparent else None
    span = tools.tracer.start_span(
        name, context=context, kind=tools.server_kind, attributes=attributes, start_time=started_at
    )
    if error:
        span.set_attribute("error.type", error)
        span.set_status(tools.error_status)
    span.end()


@cache
def load_span_tools() -> SpanTools | None:
    """Import the packages and start the exporter. Return None if they are not installed."""
    try:
        trace = import_module("opentelemetry.trace")
        sdk, export = (import_module(f"opentelemetry.sdk.trace{part}") for part in ("", ".export"))
        resources = import_module("opentelemetry.sdk.resources")
        otlp = import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
        propagation = import_module("opentelemetry.trace.propagation.tracecontext")
    except ImportError as missing:
        log.error("tracing_unavailable", reason=str(missing))  # noqa: TRY400  # the reason says everything
        return None
    names = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": SERVICE_NAME}
    provider = sdk.TracerProvider(resource=resources.Resource.create(names))
    provider.add_span_processor(export.BatchSpanProcessor(otlp.OTLPSpanExporter()))
    return SpanTools(
        tracer=provider.get_tracer(SERVICE_NAME),
        propagator=propagation.TraceContextTextMapPropagator(),
        server_kind=trace.SpanKind.SERVER,
        error_status=trace.Status(trace.StatusCode.ERROR),
    )


os.register_at_fork(after_in_child=load_span_tools.cache_clear)
