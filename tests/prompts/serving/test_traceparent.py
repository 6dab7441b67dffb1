"""The header traceparent of W3C Trace Context: validated, stored with the ledger row, shown and filtered."""

import json
from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.test import Client

from prompts.models import LedgerEntry
from prompts.proof_rows import build_ledger_row
from prompts.serving.http_params import parse_traceparent
from tests.prompts.serving.serving_stage import Stage, make_stage

TRACE_ID, PARENT_ID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
VALID = f"00-{TRACE_ID}-{PARENT_ID}-01"


@pytest.fixture
def stage(workspace) -> Stage:
    return make_stage(workspace)


@pytest.mark.parametrize(
    ("header", "stored"),
    [
        (VALID, VALID),
        (f"cc-{TRACE_ID}-{PARENT_ID}-00-more-{'x' * 10_000}", f"cc-{TRACE_ID}-{PARENT_ID}-00"),
        ("", ""),
        (f"{VALID}-more", ""),
        (f"{VALID}0", ""),
        (VALID.upper(), ""),
        (f"ff-{TRACE_ID}-{PARENT_ID}-01", ""),
        (f"00-{'0' * 32}-{PARENT_ID}-01", ""),
        (f"00-{TRACE_ID}-{'0' * 16}-01", ""),
        (f"00-{TRACE_ID[:-1]}-{PARENT_ID}-01", ""),
        (f"00-{TRACE_ID}-{PARENT_ID}-0g", ""),
        (f"00-{TRACE_ID}-{PARENT_ID}-0\n", ""),
        ('00-","status":418,"x":"4bf92f3577b34da6-00f067aa0ba9-01', ""),
        ("٠٠" + VALID[2:], ""),
        ("x" * 100_000, ""),
    ],
)
def test_only_valid_headers_are_kept(header, stored):
    assert parse_traceparent(header) == stored


def call_api(  # noqa: PLR0917  # a request
    client: Client, stage: Stage, method: str, url: str, traceparent: str, body: Any = None
) -> Any:
    options: dict[str, Any] = {
        "headers": {"Authorization": f"Bearer {stage.secret}", "traceparent": traceparent}
    }
    if body is not None:
        options |= {"data": json.dumps(body), "content_type": "application/json"}
    response = getattr(client, method)(f"/api/v1/{url}", **options)
    assert response.status_code == 200, response.content
    return response


PROMPT = "agents/pilot/channels/deck/prompt"
CALLS = {
    "fetch": ("get", PROMPT, None),
    "text": ("get", f"{PROMPT}.md", None),
    "render": ("post", f"{PROMPT}:render", {"is_background": True}),
    "batch": ("post", "prompts:batchGet", {"prompts": [{"agent": "pilot", "channel": "deck"}]}),
}


@pytest.mark.django_db
@pytest.mark.parametrize("name", CALLS)
def test_every_way_to_get_a_prompt_stores_the_header(client, stage, name):
    method, url, body = CALLS[name]
    for header, stored in ((VALID, VALID), ("nonsense", None), ("", None)):
        call_api(client, stage, method, url, header, body)
        row = LedgerEntry.objects.in_workspace(stage.workspace).latest("pk")
        assert row.traceparent == stored


@pytest.mark.django_db
def test_the_seal_does_not_cover_the_header(client, stage):
    call_api(client, stage, "get", PROMPT, VALID)
    row = LedgerEntry.objects.in_workspace(stage.workspace).get()
    assert row.traceparent == VALID
    assert build_ledger_row(row).seal() == row.seal
    assert VALID not in str(build_ledger_row(row))


@pytest.mark.django_db
def test_the_header_of_a_row_cannot_be_changed_later(client, stage):
    call_api(client, stage, "get", PROMPT, VALID)
    with pytest.raises(DatabaseError), connection.cursor() as cursor:
        cursor.execute("UPDATE prompts_ledgerentry SET traceparent = NULL")


@pytest.mark.django_db
def test_rows_of_a_trace_are_found_by_the_api_and_the_page(client, as_bob, stage):
    headers = {"Authorization": f"Bearer {stage.secret}"}
    call_api(client, stage, "get", PROMPT, VALID)
    call_api(client, stage, "get", PROMPT, f"00-{'a' * 32}-{PARENT_ID}-01")
    call_api(client, stage, "get", PROMPT, "")
    [row] = client.get(f"/api/v1/ledger?trace_id={TRACE_ID}", headers=headers).json()["items"]
    assert row["traceparent"] == VALID
    assert client.get(f"/api/v1/ledger/{row['id']}", headers=headers).json()["traceparent"] == VALID
    assert len(client.get("/api/v1/ledger", headers=headers).json()["items"]) == 3
    assert client.get("/api/v1/ledger?trace_id=x", headers=headers).status_code == 422
    pages = f"/w/{stage.workspace.slug}"
    ledger = f"{pages}/ledger/"
    assert as_bob.get(f"{ledger}?trace={TRACE_ID}").content.count(b"<tr data-row") == 1
    assert as_bob.get(f"{ledger}?trace=x").status_code == 422
    assert (
        VALID in as_bob.get(f"/w/{stage.workspace.slug}/time-machine/fetches/{row['id']}/").content.decode()
    )


@pytest.mark.planted
@pytest.mark.django_db
def test_a_header_that_is_stored_without_validation_is_detected(client, stage, monkeypatch):
    monkeypatch.setattr("prompts.serving.fetch_api.parse_traceparent", lambda header: header)
    with pytest.raises(AssertionError):
        test_every_way_to_get_a_prompt_stores_the_header(client, stage, "fetch")
