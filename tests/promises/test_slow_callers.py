"""R15: connections that stall in head, body or reading hold up no other request and are closed."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from tests.promises import SLOW_STATEMENT_PATH
from tests.promises.installation import Installation, Web, migrated_database
from tests.promises.load import LoadGenerator, LoadResponse, RequestFactory, slowest
from tests.promises.stalled_clients import (
    KEY,
    KINDS,
    NO_KEY,
    NO_SESSION,
    REFUSED,
    WRONG_KEY,
    StalledClients,
    time_request,
)

CLIENTS, CALLS, THREADS, ROUNDS = 200, 1_000, 4, 3
FEW_CLIENTS, FEW_CALLS = 22, 100
P99_RATIO, CLOSED_SECONDS, REFUSED_SECONDS = 3.0, 30.0, 5.0
# Short limits for the small test and the planted faults; statements have no timeout of their own, so that
# only the watchdog ends them.
NO_STATEMENT_TIMEOUT = {"DATABASE_STATEMENT_MS": "0"}
SHORT = NO_STATEMENT_TIMEOUT | {"DRAMATIS_BODY_SECONDS": "4", "DRAMATIS_REQUEST_SECONDS": "5"}
SHORT_CLOSED_SECONDS, SHORT_REQUEST_SECONDS = 11.0, 10.0
# Shorter than this, a p99 says more about the machine than about the server.
LEAST_P99 = 0.02


@contextmanager
def running_installation(folder, vendor: str) -> Iterator[Installation]:
    with migrated_database(folder, vendor) as url:
        installation = Installation(folder, url)
        installation.build()
        try:
            yield installation
        finally:
            installation.close()


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    with running_installation(tmp_path_factory.mktemp("slow"), "sqlite") as installation:
        yield installation


def fetch_load(installation: Installation, web: Web) -> LoadGenerator:
    requests = RequestFactory(installation.facts)
    return LoadGenerator(web.url, lambda who, turn: requests.fetch(who + turn), THREADS)


def count_served(responses: list[LoadResponse]) -> int:
    return sum(one.is_served for one in responses)


def p99(responses: list[LoadResponse]) -> float:
    return max(slowest(responses), LEAST_P99)


def run_slow_requests(web: Web, number: int, seconds: float) -> list[tuple[int, str, float]]:
    port = web.installation.port
    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(lambda _: time_request(port, SLOW_STATEMENT_PATH, seconds), range(number)))


@pytest.mark.hard
@pytest.mark.promise("R15")
def test_a_few_stalled_connections_hold_up_no_fetch(small):
    with small.web(**SHORT) as web, fetch_load(small, web) as load:
        assert count_served(load.send(20)) == 20
        with StalledClients(small.port, small.facts) as stalled, ThreadPoolExecutor(1) as pool:
            stalled.open(FEW_CLIENTS)
            slow = pool.submit(run_slow_requests, web, 2, SHORT_REQUEST_SECONDS * 2)
            fetched = load.send(FEW_CALLS)
            stalled.wait_until_closed(SHORT_CLOSED_SECONDS)
            assert stalled.list_open() == []
            assert count_served(fetched) == len(fetched) == FEW_CALLS
            assert stalled.longest(REFUSED) <= REFUSED_SECONDS
            assert stalled.statuses(NO_KEY, WRONG_KEY) == {"401"}
            assert stalled.statuses(NO_SESSION) == {"302"}
            assert stalled.statuses(KEY) <= {"408", "503"}
            for status, retry_after, seconds in slow.result():
                assert (status, retry_after) == (503, "2")
                assert seconds <= SHORT_REQUEST_SECONDS


def measure_ratio(load: LoadGenerator, stalled: StalledClients) -> tuple[float, float, list[LoadResponse]]:
    """The p99 without and with stalled connections, and the responses beside them."""
    alone = load.send(CALLS, seconds=120)
    stalled.open(CLIENTS)
    beside = load.send(CALLS, seconds=120)
    return p99(alone), p99(beside), beside


@pytest.mark.hard
@pytest.mark.promise("R15")
def test_200_stalled_connections_hold_up_no_fetch(tmp_path, record_property):
    with (
        running_installation(tmp_path, "postgresql") as installation,
        installation.web(**NO_STATEMENT_TIMEOUT) as web,
        fetch_load(installation, web) as load,
    ):
        load.send(100)
        rounds: list[tuple[float, float, float]] = []
        served, total, longest, refused = 0, 0, 0.0, 0.0
        while len(rounds) < ROUNDS and (not rounds or min(rounds)[0] > P99_RATIO):
            with StalledClients(installation.port, installation.facts) as stalled:
                alone, beside, responses = measure_ratio(load, stalled)
                stalled.wait_until_closed(CLOSED_SECONDS + 5)
                assert stalled.list_open() == []
                print(stalled.describe())
                longest, refused = max(longest, stalled.longest()), max(refused, stalled.longest(REFUSED))
            rounds.append((beside / alone, alone, beside))
            served, total = served + count_served(responses), total + len(responses)
        slow = run_slow_requests(web, 4, CLOSED_SECONDS + 10)
    ratio, alone, beside = min(rounds)
    longest_request = max(one[2] for one in slow)
    record_property(
        "measured",
        f"{CLIENTS} stalled connections: {served:,} of {total:,} fetches served, p99 {beside * 1e3:.0f} ms "
        f"beside them and {alone * 1e3:.0f} ms without ({ratio:.1f} ×); closed after at most "
        f"{longest:.0f} s, without a key {refused:.1f} s; the longest request {longest_request:.0f} s",
    )
    assert served == total
    assert ratio <= P99_RATIO
    assert longest <= CLOSED_SECONDS
    assert refused <= REFUSED_SECONDS
    assert {one[:2] for one in slow} == {(503, "2")}
    assert longest_request <= CLOSED_SECONDS


# --- planted faults ---------------------------------------------------------------------------------------


@pytest.mark.hard
@pytest.mark.planted
@pytest.mark.promise("R15")
def test_a_body_that_is_read_before_the_key_is_found(small):
    with small.web("body_before_key", **SHORT), StalledClients(small.port, small.facts) as stalled:
        stalled.open(FEW_CLIENTS, [NO_KEY])
        stalled.wait_until_closed(SHORT_CLOSED_SECONDS)
        assert stalled.statuses(NO_KEY) != {"401"}


@pytest.mark.hard
@pytest.mark.planted
@pytest.mark.promise("R15")
def test_a_missing_limit_on_body_reads_is_found(small):
    with small.web("without_body_cap", **SHORT) as web, fetch_load(small, web) as load:
        alone = load.send(FEW_CALLS)
        with StalledClients(small.port, small.facts) as stalled:
            stalled.open(FEW_CLIENTS, [KEY])
            beside = load.send(FEW_CALLS)
        assert p99(beside) > P99_RATIO * p99(alone)


@pytest.mark.hard
@pytest.mark.planted
@pytest.mark.promise("R15")
def test_a_missing_watchdog_is_found(small):
    with small.web("without_watchdog", **SHORT) as web:
        [(status, _, seconds)] = run_slow_requests(web, 1, SHORT_REQUEST_SECONDS)
        assert status != 503 or seconds > SHORT_REQUEST_SECONDS


@pytest.mark.hard
@pytest.mark.planted
@pytest.mark.promise("R15")
def test_connections_that_are_not_closed_are_found(small):
    with small.web("without_closing", **SHORT), StalledClients(small.port, small.facts) as stalled:
        stalled.open(len(KINDS))
        stalled.wait_until_closed(SHORT_CLOSED_SECONDS)
        assert stalled.list_open() != []
