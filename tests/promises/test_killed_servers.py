"""R4: every acknowledged request is recorded, even if the server is killed.

The reverse is allowed: a row may exist whose response was lost with the server.
"""

import json
from typing import Any

import httpx
import pytest

from tests.promises.installation import Installation, Web, migrated_database
from tests.promises.load import LoadGenerator, LoadRequest, LoadResponse, RequestFactory

KILLS, CALLS, THREADS = 20, 10_000, 6
FAULTY_KILLS, FAULTY_CALLS = 3, 300
# One request in so many is an edit, which creates a version.
EDITS = 24
# Seconds for the requests between two kills, on a busy machine.
TIMEOUT = 60.0
NOTHING_LOST = {
    "missing": 0,
    "wrong digests": 0,
    "missing edits": 0,
    "torn": [],
    "broken links": 0,
    "bad rows": 0,
}


@pytest.fixture(scope="module", params=["postgresql", "sqlite"])
def installation(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(f"killed-{request.param}")
    with migrated_database(folder, request.param) as url:
        installation = Installation(folder, url)
        installation.build()
        yield installation
        installation.close()


def kill_under_load(installation: Installation, web: Web, kills: int, calls: int) -> list[LoadResponse]:
    """Send requests while the server is killed repeatedly; return the responses."""
    requests = RequestFactory(installation.facts)

    def make_request(who: int, turn: int) -> LoadRequest:
        if turn % EDITS == who % EDITS:
            return requests.edit(who, f"Be {who}, for the {turn}th time.")
        return requests.fetch(who + turn)

    with LoadGenerator(web.url, make_request, THREADS) as load:
        for number in range(1, kills + 1):
            load.is_open.set()
            assert load.wait_until_served(calls * number // kills, TIMEOUT), web.log.read_text()[-2_000:]
            web.kill()
            load.is_open.clear()
            web.start()
    return load.responses


def check_records(installation: Installation, responses: list[LoadResponse]) -> dict[str, Any]:
    served = [one for one in responses if one.is_served]
    fetches = {one.request_id: one.digest for one in served if one.request.kind == "fetch"}
    edits = [
        (one.request.target, json.loads(one.body)["revision"], one.request.text)
        for one in served
        if one.request.kind == "edit"
    ]
    assert len(fetches) + len(edits) == len(served)
    (installation.folder / "acknowledged.json").write_text(json.dumps({"fetches": fetches, "edits": edits}))
    return installation.scene("check") | {"fetches": len(fetches), "edits": len(edits)}


@pytest.mark.hard
@pytest.mark.promise("R4")
def test_twenty_kills_lose_nothing_that_was_acknowledged(installation, record_property):
    with installation.web() as web:
        responses = kill_under_load(installation, web, KILLS, CALLS)
    served = [one for one in responses if one.is_served]
    unanswered = [one for one in responses if one.status == 0]
    assert len(served) >= CALLS
    assert len(unanswered) >= KILLS, "nobody was asking when the server was killed"
    assert len(served) + len(unanswered) == len(responses), {one.status for one in responses}
    facts = check_records(installation, responses)
    kind = installation.database.partition(":")[0]
    record_property(
        "measured",
        f"{kind}: {KILLS} kills, {facts['fetches']:,} fetches and {facts['edits']:,} edits acknowledged, "
        f"{facts['missing'] + facts['missing edits']} missing; {facts['versions']:,} versions, "
        f"{len(facts['torn'])} torn, {facts['broken links']} broken links; "
        f"{facts['rows'] - facts['fetches']} rows recorded whose answer was lost",
    )
    assert {name: facts[name] for name in NOTHING_LOST} == NOTHING_LOST, facts


@pytest.mark.hard
@pytest.mark.planted
@pytest.mark.promise("R4")
@pytest.mark.parametrize("installation", ["postgresql"], indirect=True)
def test_ledger_rows_written_after_the_response_are_found_missing(installation):
    with installation.web("row_after_answer") as web:
        responses = kill_under_load(installation, web, FAULTY_KILLS, FAULTY_CALLS)
    assert check_records(installation, responses)["missing"] > 0


def add_soul(installation: Installation, web: Web) -> httpx.Response:
    headers = {"Authorization": f"Bearer {installation.facts['editor']}", "Idempotency-Key": "one"}
    return httpx.post(f"{web.url}/api/v1/souls", json={"name": "Only once"}, headers=headers, timeout=30)


@pytest.mark.hard
@pytest.mark.promise("R12", "server killed between commit and answer: the retry got the first answer")
def test_a_retry_after_a_lost_response_returns_the_first_result(installation):
    with installation.web("ends_before_answer") as web, pytest.raises(httpx.TransportError):
        add_soul(installation, web)
    with installation.web() as web:
        answer = add_soul(installation, web)
        headers = {"Authorization": f"Bearer {installation.facts['editor']}"}
        souls = httpx.get(f"{web.url}/api/v1/souls?q=once", headers=headers, timeout=30).json()
    assert (answer.status_code, answer.headers["Idempotency-Replayed"]) == (201, "true")
    assert [soul["id"] for soul in souls["items"]] == [answer.json()["id"]]
