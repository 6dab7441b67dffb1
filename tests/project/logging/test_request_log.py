"""Request log: one line per request with its id, duration and route family."""

import logging

import pytest

from tests.prompts.serving.fetch_stage import bearer, fetch_by_fast_path
from tests.prompts.serving.serving_stage import make_stage

FACTS = {"request_id", "code", "request", "family", "duration_ms"}


def lines_of(caplog) -> list[dict[str, object]]:
    """Return the lines about finished and failed requests."""
    lines = [record.msg for record in caplog.records if isinstance(record.msg, dict)]
    return [line for line in lines if line["event"] in {"request_finished", "request_failed"}]


@pytest.fixture(autouse=True)
def info_level(caplog):
    caplog.set_level(logging.INFO)


@pytest.mark.django_db
def test_every_request_leaves_one_line_with_all_facts(client, caplog):
    answers = [client.get("/healthz"), client.get("/w/nowhere/"), client.get("/api/v1/agents")]
    lines = lines_of(caplog)
    assert [line["request_id"] for line in lines] == [answer["X-Request-ID"] for answer in answers]
    assert [line["family"] for line in lines] == ["health", "home", "api"]
    for line in lines:
        assert set(line) >= FACTS
        assert isinstance(line["duration_ms"], float)


@pytest.mark.django_db
def test_a_request_that_breaks_leaves_one_line_too(client, caplog, monkeypatch):
    client.raise_request_exception = False
    monkeypatch.setattr("project.metrics.views.collect_metrics", lambda: 1 / 0)
    assert client.get("/metrics").status_code == 500
    [line] = lines_of(caplog)
    assert line["event"] == "request_failed"
    assert line["family"] == "metrics"
    assert set(line) >= FACTS


@pytest.mark.django_db
@pytest.mark.urls("tests.prompts.serving.fetch_urls")
def test_fetches_have_a_ledger_row_and_are_logged_only_if_enabled(workspace, caplog, settings):
    stage = make_stage(workspace)
    response = fetch_by_fast_path(AUTHORIZATION=bearer(stage.secret))
    assert lines_of(caplog) == []
    assert stage.rows[-1].request_id == response.headers["X-Request-ID"]
    settings.DRAMATIS_LOG_FETCHES = True
    response = fetch_by_fast_path(AUTHORIZATION=bearer(stage.secret))
    [line] = lines_of(caplog)
    assert set(line) >= FACTS
    assert (line["code"], line["family"]) == (200, "fetch")
    assert line["request_id"] == response.headers["X-Request-ID"]


@pytest.mark.django_db
@pytest.mark.urls("tests.prompts.serving.fetch_urls")
def test_a_refused_fetch_always_leaves_its_line(workspace, caplog):
    make_stage(workspace)
    response = fetch_by_fast_path(AUTHORIZATION="Bearer nonsense")
    [line] = lines_of(caplog)
    assert line["code"] == response.status == 401
