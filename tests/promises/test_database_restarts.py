"""R7: the database may restart; requests meanwhile get 503 with Retry-After, and no process is restarted."""

import time
from collections import Counter
from dataclasses import dataclass

import pytest

from tests.database_dump import kept_dump, run
from tests.promises.cluster import Cluster, cluster
from tests.promises.installation import House, Web
from tests.promises.load import Crowd, Heard, Wanting, Wish

RESTARTS = ("fast", "immediate") * 5
RECOVERED_SECONDS, THREADS = 5.0, 6
# Requests before each restart, and successful requests in a row after it that end the outage: each of the
# six threads has then sent every kind of request.
WARM, STEADY = 48, 72
# Requests after a restart without load.
QUIET = 48


@pytest.fixture(scope="module")
def database():
    with cluster() as made:
        yield made


@pytest.fixture(scope="module")
def house(database, tmp_path_factory):
    house = House(tmp_path_factory.mktemp("restarts"), database.url)
    # With the kept dump of an earlier run there is nothing left to migrate.
    if kept_dump().exists():
        run("psql", "-q", "-v", "ON_ERROR_STOP=1", "-f", kept_dump(), database.url)
    house.build()
    yield house
    house.close()


def wishes_of(house: House):
    """Requests through the ledger writer, the API's connection pool, and pages with a session."""
    wanting = Wanting(house.facts)

    def wishes(who: int, turn: int) -> Wish:
        if turn % 8 == 1:
            return wanting.edit(who, f"Be {who}, for the {turn}th time.")
        if turn % 4 == 2:
            return wanting.read()
        return wanting.page() if turn % 8 == 3 else wanting.fetch(who + turn)

    return wishes


@dataclass
class Restart:
    """When the database accepted connections again, the last failure, and whether requests then succeeded."""

    up: float
    last_failure: float
    is_steady: bool

    @property
    def seconds(self) -> float:
        return max(0.0, self.last_failure - self.up)


def restart(database: Cluster, crowd: Crowd, mode: str) -> Restart:
    before = crowd.served
    crowd.wait_for(lambda: crowd.served >= before + WARM, 20)
    database.stop(mode)
    up = database.start()
    is_steady = crowd.wait_for(lambda: steady(crowd.heard, up), RECOVERED_SECONDS * 3)
    failures = [one.ended for one in list(crowd.heard) if not one.is_served]
    return Restart(up, max(failures, default=up), is_steady)


def steady(heard: list[Heard], up: float) -> bool:
    latest = heard[-STEADY:]
    return all(one.is_served and one.began > up for one in latest)


def restarted(database: Cluster, house: House, web: Web, modes) -> tuple[list[Restart], list[Heard]]:
    with Crowd(web.url, wishes_of(house), THREADS) as crowd:
        crowd.is_open.set()
        all_of_them = [restart(database, crowd, mode) for mode in modes]
    return all_of_them, [one for one in crowd.heard if not one.is_served]


def told_badly(failures: list[Heard]) -> Counter[tuple[str, int, str]]:
    """Count failures that are not 503 or lack Retry-After."""
    bad = [one for one in failures if one.status != 503 or not one.retry_after]
    return Counter((one.wish.what, one.status, one.retry_after) for one in bad)


def after_a_quiet_restart(database: Cluster, house: House, web: Web) -> list[Heard]:
    """Restart the database while connections are idle in the pool; return the failures of the next requests."""
    wishes = wishes_of(house)
    with Crowd(web.url, wishes, THREADS) as crowd:
        assert all(one.is_served for one in crowd.ask(WARM))
        time.sleep(0.2)
        database.stop("fast")
        database.start()
        return [one for one in crowd.ask(QUIET) if not one.is_served]


@pytest.mark.hard
@pytest.mark.promise("R7")
def test_the_database_restarts_ten_times_under_load(database, house, record_property):
    with house.web() as web:
        before = web.processes()
        restarts, failures = restarted(database, house, web, RESTARTS)
        quiet = after_a_quiet_restart(database, house, web)
        after = web.processes()
    slowest = max(one.seconds for one in restarts)
    record_property(
        "measured",
        f"{len(restarts)} restarts, {len(failures)} calls told to come again, steady at most {slowest:.1f} s "
        f"after it took connections; {sum(told_badly(failures).values())} told otherwise; none failed after "
        "a restart while nobody asked; the same processes throughout",
    )
    assert told_badly(failures) == {}
    assert failures, "nobody asked while the database was away"
    assert all(one.is_steady for one in restarts)
    assert slowest <= RECOVERED_SECONDS
    assert quiet == []
    assert after == before


@pytest.mark.hard
@pytest.mark.planted
@pytest.mark.promise("R7")
def test_a_failure_that_is_not_translated_is_found(database, house):
    with house.web("without_translation") as web:
        _, failures = restarted(database, house, web, ["fast"])
    assert any(one.status == 500 for one in failures)
    assert told_badly(failures)


@pytest.mark.hard
@pytest.mark.planted
@pytest.mark.promise("R7")
def test_a_pool_that_believes_its_connections_is_found(database, house):
    with house.web("without_health_checks") as web:
        assert after_a_quiet_restart(database, house, web)
