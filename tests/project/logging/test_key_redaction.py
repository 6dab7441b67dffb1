"""API keys are redacted in logs: in messages, exceptions and arguments of jobs."""

import json
import logging
import re

import pytest
import structlog
from celery import shared_task

from personas.api_keys.format import KEY_PREFIXES, generate_key_secret
from project.logs import redaction as log_redaction
from project.logs.config import build_logging_config
from project.logs.redaction import MASK
from prompts.serving.request import KeyClient

KINDS = list(KEY_PREFIXES)


@pytest.fixture
def printed():
    """Return a function that collects the lines of a logger in the production format."""
    lines: list[str] = []
    handlers = []
    config = build_logging_config(json=True, level="INFO")["formatters"]["line"]

    class Keeper(logging.Handler):
        def emit(self, record):
            lines.append(self.format(record))

    def listen(name):
        handler = Keeper()
        handler.setFormatter(
            structlog.stdlib.ProcessorFormatter(
                processors=config["processors"], foreign_pre_chain=config["foreign_pre_chain"]
            )
        )
        logging.getLogger(name).addHandler(handler)
        handlers.append((name, handler))
        return lines

    yield listen
    for name, handler in handlers:
        logging.getLogger(name).removeHandler(handler)


def assert_masked(lines, secret):
    assert lines
    for line in lines:
        assert secret not in line
        assert secret.rpartition("_")[2][:12] not in line
        assert MASK in line


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_in_a_line_is_masked(printed, kind):
    secret, lines = generate_key_secret(kind), printed("tests.keys")
    logging.getLogger("tests.keys").warning("came with %s, in a list %s", secret, [secret])
    assert_masked(lines, secret)


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_in_an_exception_is_masked(printed, kind):
    secret, lines = generate_key_secret(kind), printed("tests.keys")
    try:
        {"another": 1}[secret]
    except KeyError:
        logging.getLogger("tests.keys").exception("failed")
    assert any("KeyError" in line for line in lines)
    assert_masked(lines, secret)


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_in_the_arguments_of_a_failing_job_is_masked(printed, kind):
    secret, lines = generate_key_secret(kind), printed("celery.app.trace")

    @shared_task(name=f"tests.leaky_{kind}_job")
    def leaky_job(one, *, other):
        raise ValueError(f"cannot use {one} or {other}")

    leaky_job.apply(args=(secret,), kwargs={"other": secret})
    assert any("ValueError" in line for line in lines)
    assert_masked(lines, secret)


@pytest.mark.parametrize("kind", KINDS)
def test_keys_in_nested_values_of_an_event_are_masked(kind):
    secret = generate_key_secret(kind)
    event = log_redaction.redact_event(
        None, "", {"args": [secret, {"deep": (secret,)}], "kwargs": {"one": secret}}
    )
    assert secret not in json.dumps(event)


@pytest.mark.parametrize("kind", KINDS)
def test_a_client_is_printed_without_its_key(kind):
    assert "drm_" not in repr(KeyClient(generate_key_secret(kind)))


@pytest.mark.planted
def test_a_mask_that_knows_one_kind_only_is_found(printed, monkeypatch):
    monkeypatch.setattr(log_redaction, "API_KEYS", re.compile(r"drm_bot_[A-Za-z0-9]+"))
    with pytest.raises(AssertionError):
        test_a_key_in_a_line_is_masked(printed, "admin")
