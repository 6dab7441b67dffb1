"""Logging for people in development and for machines in production."""

from io import StringIO
from typing import Any, TextIO

import structlog
from structlog.typing import Processor

from project.log_redaction import clean_text, redact


def shared_processors() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]


def renderers(*, json: bool) -> list[Processor]:
    """Tracebacks stay plain in both forms: richer ones print local variables, and so secrets."""
    if json:
        return [structlog.processors.format_exc_info, redact, structlog.processors.JSONRenderer()]
    return [redact, structlog.dev.ConsoleRenderer(exception_formatter=masked_traceback)]


def masked_traceback(out: TextIO, exc_info: Any) -> None:
    """What an exception says may hold a key; the lines before it were masked already."""
    text = StringIO()
    structlog.dev.plain_traceback(text, exc_info)
    out.write(clean_text(text.getvalue()))


def configure_structlog() -> None:
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared_processors(),
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def logging_config(*, json: bool, level: str) -> dict[str, Any]:
    remove_meta = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    formatter = {
        "()": structlog.stdlib.ProcessorFormatter,
        "processors": [remove_meta, *renderers(json=json)],
        "foreign_pre_chain": [*shared_processors(), structlog.stdlib.ExtraAdder(allow=())],
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
            # The request log already says it, with the path cleaned of tokens.
            "django.request": {"level": "CRITICAL"},
            "django.server": {"handlers": [], "level": "CRITICAL"},
            # Each job is already logged once, with its request id.
            "celery.app.trace": {"level": "WARNING"},
            "celery.beat": {"level": "WARNING"},
            "celery.worker.strategy": {"level": "WARNING"},
        },
    }
