"""The test servers: real, separate for each worker, and never skipped silently."""

import os

import pytest
from django.core.management.color import no_style
from django.db import connection, connections

from project.redis_client import build_celery_url, build_client_url
from tests.pytest_servers import launch_arguments, list_not_run, with_database
from tests.workers import url_of_test_database


def test_a_browser_test_without_chromium_fails(monkeypatch):
    monkeypatch.setenv("CHROMIUM", "/nowhere/chromium")
    with pytest.raises(pytest.fail.Exception, match="needs Chromium"):
        launch_arguments(headed=False)


def test_the_sandbox_is_left_only_by_root(monkeypatch):
    monkeypatch.setenv("CHROMIUM", "/bin/sh")
    monkeypatch.setattr(os, "getuid", lambda: 0)
    assert "--no-sandbox" in str(launch_arguments(headed=False)["args"])
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    assert "--no-sandbox" not in str(launch_arguments(headed=False)["args"])


@pytest.mark.parametrize(
    ("url", "third"),
    [
        ("unix:///tmp/s", "unix:///tmp/s?db=3"),
        ("redis://host:6379", "redis://host:6379/3"),
        ("redis://host:6379/0", "redis://host:6379/3"),
    ],
)
def test_each_test_worker_has_its_own_redis_database(url, third):
    assert with_database(url, 3) == third


def test_a_socket_address_in_both_spellings():
    assert build_celery_url("unix:///tmp/s?db=3") == "redis+socket:///tmp/s?virtual_host=3"
    assert build_client_url("redis+socket:///tmp/s?virtual_host=3") == "unix:///tmp/s?db=3"
    assert build_celery_url("redis://host/0") == build_client_url("redis://host/0") == "redis://host/0"


@pytest.mark.django_db
def test_a_worker_is_sent_to_the_test_database():
    assert str(connection.settings_dict["NAME"]) in url_of_test_database()
    assert url_of_test_database() != os.environ["DATABASE_URL"]


@pytest.mark.django_db
def test_every_connection_keeps_the_rows_that_last():
    """A thread with a browser's event loop gets another connection; it must keep content types too."""
    another = connections.create_connection("default")
    assert another.ops.sql_flush(no_style(), ["django_content_type", "personas_agent"]) == ["personas_agent"]


def test_a_skip_for_want_of_a_program_is_listed_at_the_end_of_the_run():
    def report(reason):
        return pytest.TestReport(
            "t", ("t.py", 1, "t"), {}, "skipped", ("t.py", 1, f"Skipped: {reason}"), "setup"
        )

    skipped = [report("NOT RUN: no podman"), report("SQLite has no roles"), report("NOT RUN: no podman")]
    assert list_not_run(skipped) == ["NOT RUN: no podman"]
