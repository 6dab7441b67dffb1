"""Log lines: machine-readable in production, traceable, and free of secrets."""

import json
import logging
import logging.config

import pytest
import structlog

from project.logs.config import build_logging_config
from project.logs.redaction import MASK, redact_event, redact_path

KEY = "drm_bot_" + "a1B2c3" * 6


def formatted(capsys, log):
    """Return the last line that the production format prints."""
    config = build_logging_config(json=True, level="INFO")
    formatter_config = config["formatters"]["line"]
    formatter = structlog.stdlib.ProcessorFormatter(
        processors=formatter_config["processors"], foreign_pre_chain=formatter_config["foreign_pre_chain"]
    )
    handler = logging.StreamHandler()
    handler.setFormatter(formatter)
    logger = logging.getLogger("tests.log")
    logger.addHandler(handler)
    try:
        log(logger)
    finally:
        logger.removeHandler(handler)
    return capsys.readouterr().err.strip().splitlines()[-1]


def test_production_lines_are_json_and_name_the_level(capsys):
    line = json.loads(formatted(capsys, lambda logger: logger.warning("disk %s", "full")))
    assert line["event"] == "disk full"
    assert line["level"] == "warning"
    assert line["timestamp"].endswith("Z")


def test_a_traceback_shows_no_local_variables(capsys):
    def fail(logger):
        opensesame = "hunter2-in-a-variable"
        try:
            int(opensesame[:0])
        except ValueError:
            logger.exception("failed")

    line = formatted(capsys, fail)
    assert "ValueError" in line
    assert "hunter2" not in line


@pytest.mark.parametrize(
    "name", ["password", "Authorization", "csrf_token", "SECRET_KEY", "session_cookie", "api_key"]
)
def test_fields_named_like_secrets_are_masked(name):
    assert redact_event(None, "", {name: "hunter2"}) == {name: MASK}
    assert redact_event(None, "", {"data": {name: "hunter2"}}) == {"data": {name: MASK}}


def test_keys_and_url_passwords_are_masked_everywhere():
    event = redact_event(None, "", {"event": f"key {KEY} at redis://u:hunter2@host/0", "list": [KEY]})
    assert KEY not in str(event)
    assert "hunter2" not in str(event)
    assert "redis://u:" in event["event"]


@pytest.mark.parametrize(
    "path",
    [
        "/accounts/password/reset/key/3-cx1abc-0123456789abcdef0123456789abcdef/",
        "/accounts/confirm-email/MQ:1vJx2a:Zm9vYmFyYmF6cXV4/",
        "/invitations/eyJhIjoxfQ:1vJx2a:Zm9vYmFyYmF6cXV4",
    ],
)
def test_links_with_tokens_lose_them(path):
    token = path.strip("/").rpartition("/")[2]
    assert token not in redact_path(path)
    assert MASK in redact_path(path)


def test_ordinary_paths_stay_readable():
    path = "/w/acme/agents/night-shift/memories/6f1c1f0e-5b0a-4d2e-9c3b-0a1b2c3d4e5f/"
    assert redact_path(path + "?q=secret") == path


def test_a_request_is_logged_with_its_id_and_without_its_query(client, caplog):
    with caplog.at_level(logging.INFO):
        answer = client.get("/healthz?token=hunter2")
    lines = [record.msg for record in caplog.records if isinstance(record.msg, dict)]
    finished = next(line for line in lines if line["event"] == "request_finished")
    assert finished["request_id"] == answer["X-Request-ID"]
    assert finished["request"] == "GET /healthz"
    assert "hunter2" not in caplog.text
