"""Security headers and the request id of every response."""

import pytest

from tests.isolation.probe import CONTENT_POLICY


def policy_of(answer):
    return {part.strip() for part in answer["Content-Security-Policy"].split(";")}


@pytest.mark.django_db
@pytest.mark.parametrize(
    "path", ["/accounts/login/", "/operator/", "/nowhere/at/all", "/healthz", "/static/none.css"]
)
def test_every_answer_carries_the_strict_headers(client, path):
    answer = client.get(path)
    assert policy_of(answer) == CONTENT_POLICY
    assert "unsafe" not in answer["Content-Security-Policy"]
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Referrer-Policy"] == "same-origin"
    assert answer["Cross-Origin-Opener-Policy"] == "same-origin"
    assert answer["X-Frame-Options"] == "DENY"
    assert "Strict-Transport-Security" not in answer


def test_each_answer_has_its_own_request_id(client):
    first, second = (
        client.get("/healthz", headers={"X-Request-ID": "forged"})["X-Request-ID"] for _ in range(2)
    )
    assert len(first) == 36
    assert first != second
    assert "forged" not in (first, second)


@pytest.mark.django_db
def test_refusals_carry_the_policy_too(client):
    answer = client.post("/accounts/login/", data=b"x" * (1024 * 1024 + 1), content_type="text/plain")
    assert answer.status_code == 413
    assert policy_of(answer) == CONTENT_POLICY


def test_a_programs_oversize_body_is_refused_as_a_problem(client):
    answer = client.post("/api/v1/agents", data=b"x" * (1024 * 1024 + 1), content_type="application/json")
    assert answer.status_code == 413
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["code"] == "body_too_large"
    assert answer.json()["request_id"] == answer["X-Request-ID"]


@pytest.mark.django_db
def test_a_body_at_the_limit_passes(client):
    assert (
        client.post("/accounts/login/", data=b"x" * 1024 * 1024, content_type="text/plain").status_code != 413
    )
