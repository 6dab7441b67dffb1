"""Liveness (/healthz) and readiness (/readyz) endpoints."""

import time

import pytest
from django.db import connection
from django.db.utils import OperationalError

from tests.frozen_process import freeze, thaw
from tests.servers import start_redis


def test_a_living_process_needs_no_database(client):
    # Without the django_db mark any query would fail this test.
    answer = client.get("/healthz")
    assert answer.status_code == 200
    assert answer.json() == {"status": "ok"}
    assert "no-store" in answer["Cache-Control"]


@pytest.mark.django_db
@pytest.mark.redis
def test_ready_when_all_parts_answer(client):
    answer = client.get("/readyz")
    assert answer.status_code == 200, answer.json()
    assert answer.json()["checks"] == {"database": "ok", "redis": "ok", "migrations": "ok"}


@pytest.mark.django_db
def test_ready_but_degraded_without_redis(client, settings, tmp_path):
    """Bots are served without Redis, so a proxy must not take the web out of service."""
    settings.REDIS_URL = f"unix://{tmp_path}/nobody.sock"
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json() == {
        "status": "degraded",
        "checks": {"database": "ok", "redis": "failed", "migrations": "ok"},
    }
    assert "Retry-After" not in answer


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.redis
def test_a_frozen_redis_delays_the_answer_by_less_than_a_second(client, settings):
    """Proxies give a health check a second or more."""
    server = start_redis()
    settings.REDIS_URL = server.url
    try:
        client.get("/readyz")
        freeze(server.process)
        for _ in range(10):
            began = time.monotonic()
            answer = client.get("/readyz")
            seconds = time.monotonic() - began
            assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
            if seconds < 0.9:
                break
        # A busy machine delays some of them, a missing limit all.
        assert seconds < 0.9
    finally:
        thaw(server.process)
        server.stop()


@pytest.mark.django_db
def test_unready_without_database(client):
    def gone(execute, sql, params, many, context):
        raise OperationalError("connection to 10.0.0.7 refused")

    with connection.execute_wrapper(gone):
        answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer["Retry-After"] == "5"
    assert (answer.json()["status"], answer.json()["checks"]["database"]) == ("unready", "failed")
    assert "10.0.0.7" not in answer.content.decode()


@pytest.mark.django_db
def test_unready_with_unapplied_migrations(client, monkeypatch):
    monkeypatch.setattr(
        "django.db.migrations.executor.MigrationExecutor.migration_plan", lambda *_: ["one", "two"]
    )
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["checks"]["migrations"] == "2 unapplied"


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_health_endpoints_are_read_only(client, path):
    assert client.post(path).status_code == 405
