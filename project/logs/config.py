"""Logging configuration: readable lines in development, JSON in production."""

from io import StringIO
from typing import Any, TextIO

import structlog
from structlog.typing import Processor

from project.logs.redaction import redact_event, redact_text


def get_shared_processors() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]


def get_renderers(*, json: bool) -> list[Processor]:
    """Return the processors that render an event.

    Tracebacks are plain in both formats, because rich tracebacks print local variables, including secrets.
    """
    if json:
        return [structlog.processors.format_exc_info, redact_event, structlog.processors.JSONRenderer()]
    return [redact_event, structlog.dev.ConsoleRenderer(exception_formatter=write_redacted_traceback)]


def write_redacted_traceback(out: TextIO, exc_info: Any) -> None:
    """Write a redacted traceback, because the message of an exception may contain an API key."""
    text = StringIO()
    structlog.dev.plain_traceback(text, exc_info)
    out.write(redact_text(text.getvalue()))


def configure_structlog() -> None:
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *get_shared_processors(),
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def build_logging_config(*, json: bool, level: str) -> dict[str, Any]:
    remove_meta = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    formatter = {
        "()": structlog.stdlib.ProcessorFormatter,
        "processors": [remove_meta, *get_renderers(json=json)],
        "foreign_pre_chain": [*get_shared_processors(), structlog.stdlib.ExtraAdder(allow=())],
    }
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": formatter},
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["console"], "level": level},
        "loggers": {
            # Django's own handlers would print every line a second time.
            "django": {"handlers": [], "level": level, "propagate": True},
            # RequestLogMiddleware already logs every request, with a redacted path.
            "django.request": {"level": "CRITICAL"},
            "django.server": {"handlers": [], "level": "CRITICAL"},
            # django-structlog already logs each job, with its request id.
            "celery.app.trace": {"level": "WARNING"},
            "celery.beat": {"level": "WARNING"},
            "celery.worker.strategy": {"level": "WARNING"},
        },
    }
