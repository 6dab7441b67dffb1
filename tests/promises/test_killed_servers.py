"""R4: every acknowledged request is recorded, even if the server is killed.

The reverse is allowed: a row may exist whose response was lost with the server.
"""

import json
from typing import Any

import httpx
import pytest

from tests.promises.installation import House, Web, migrated_database
from tests.promises.load import Crowd, Heard, Wanting, Wish

KILLS, CALLS, THREADS = 20, 10_000, 6
FAULTY_KILLS, FAULTY_CALLS = 3, 300
# One request in so many is an edit, which creates a version.
EDITS = 24
# Seconds for the requests between two kills, on a busy machine.
PATIENCE = 60.0
WHOLE = {"missing": 0, "other words": 0, "missing edits": 0, "torn": [], "broken links": 0, "bad rows": 0}


@pytest.fixture(scope="module", params=["postgresql", "sqlite"])
def house(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(f"killed-{request.param}")
    with migrated_database(folder, request.param) as url:
        house = House(folder, url)
        house.build()
        yield house
        house.close()


def under_fire(house: House, web: Web, kills: int, calls: int) -> list[Heard]:
    """Send requests while the server is killed repeatedly; return the responses."""
    wanting = Wanting(house.facts)

    def wishes(who: int, turn: int) -> Wish:
        if turn % EDITS == who % EDITS:
            return wanting.edit(who, f"Be {who}, for the {turn}th time.")
        return wanting.fetch(who + turn)

    with Crowd(web.url, wishes, THREADS) as crowd:
        for number in range(1, kills + 1):
            crowd.is_open.set()
            assert crowd.serves(calls * number // kills, PATIENCE), web.log.read_text()[-2_000:]
            web.kill()
            crowd.is_open.clear()
            web.start()
    return crowd.heard


def what_is_left(house: House, heard: list[Heard]) -> dict[str, Any]:
    served = [one for one in heard if one.is_served]
    fetches = {one.request_id: one.digest for one in served if one.wish.what == "fetch"}
    edits = [
        (one.wish.about, json.loads(one.body)["revision"], one.wish.words)
        for one in served
        if one.wish.what == "edit"
    ]
    assert len(fetches) + len(edits) == len(served)
    (house.folder / "acknowledged.json").write_text(json.dumps({"fetches": fetches, "edits": edits}))
    return house.scene("check") | {"fetches": len(fetches), "edits": len(edits)}


@pytest.mark.hard
@pytest.mark.promise("R4")
def test_twenty_kills_lose_nothing_that_was_acknowledged(house, record_property):
    with house.web() as web:
        heard = under_fire(house, web, KILLS, CALLS)
    served = [one for one in heard if one.is_served]
    unanswered = [one for one in heard if one.status == 0]
    assert len(served) >= CALLS
    assert len(unanswered) >= KILLS, "nobody was asking when the server was killed"
    assert len(served) + len(unanswered) == len(heard), {one.status for one in heard}
    found = what_is_left(house, heard)
    kind = house.database.partition(":")[0]
    record_property(
        "measured",
        f"{kind}: {KILLS} kills, {found['fetches']:,} fetches and {found['edits']:,} edits acknowledged, "
        f"{found['missing'] + found['missing edits']} missing; {found['versions']:,} versions, "
        f"{len(found['torn'])} torn, {found['broken links']} broken links; "
        f"{found['rows'] - found['fetches']} rows recorded whose answer was lost",
    )
    assert {name: found[name] for name in WHOLE} == WHOLE, found


@pytest.mark.hard
@pytest.mark.planted
@pytest.mark.promise("R4")
@pytest.mark.parametrize("house", ["postgresql"], indirect=True)
def test_rows_written_after_the_answer_are_missed(house):
    with house.web("row_after_answer") as web:
        heard = under_fire(house, web, FAULTY_KILLS, FAULTY_CALLS)
    assert what_is_left(house, heard)["missing"] > 0


def add_soul(house: House, web: Web) -> httpx.Response:
    headers = {"Authorization": f"Bearer {house.facts['editor']}", "Idempotency-Key": "one"}
    return httpx.post(f"{web.url}/api/v1/souls", json={"label": "Only once"}, headers=headers, timeout=30)


@pytest.mark.hard
@pytest.mark.promise("R12", "server killed between commit and answer: the retry got the first answer")
def test_a_call_whose_answer_was_lost_with_the_server_is_answered_the_second_time(house):
    with house.web("ends_before_answer") as web, pytest.raises(httpx.TransportError):
        add_soul(house, web)
    with house.web() as web:
        answer = add_soul(house, web)
        headers = {"Authorization": f"Bearer {house.facts['editor']}"}
        found = httpx.get(f"{web.url}/api/v1/souls?q=once", headers=headers, timeout=30).json()
    assert (answer.status_code, answer.headers["Idempotency-Replayed"]) == (201, "true")
    assert [soul["id"] for soul in found["data"]] == [answer.json()["id"]]
