"""The processes of a development server log warnings only, so that the sign-in stays visible."""

from project.supervisor.children import build_child_environment


def test_requests_and_jobs_are_logged_on_demand(monkeypatch):
    monkeypatch.delenv("LOG_LEVEL", raising=False)
    assert build_child_environment("127.0.0.1", 8000)["LOG_LEVEL"] == "WARNING"
    monkeypatch.setenv("LOG_LEVEL", "INFO")
    assert build_child_environment("127.0.0.1", 8000)["LOG_LEVEL"] == "INFO"
