"""Trace attributes and the header traceparent, if opentelemetry-api is installed."""

from functools import cache
from importlib import import_module
from typing import Any

from dramatis_client.prompts import Prompt


@cache
def import_trace_api() -> Any:
    """Return the module opentelemetry.trace, or None if it is not installed."""
    try:
        return import_module("opentelemetry.trace")
    except ImportError:
        return None


def set_span_attributes(prompt: Prompt) -> None:
    """Set the prompt's trace attributes on the current span. They contain no text."""
    if trace := import_trace_api():
        span = trace.get_current_span()
        if span.is_recording():
            span.set_attributes(prompt.trace_metadata())


def build_trace_headers() -> dict[str, str]:
    """Return the header traceparent (W3C Trace Context) of the current span, or nothing."""
    trace = import_trace_api()
    context = trace.get_current_span().get_span_context() if trace else None
    if context is None or not context.is_valid:
        return {}
    return {
        "traceparent": f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags) & 1:02x}"
    }
