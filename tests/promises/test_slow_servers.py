"""R15: a name server and a mail server that hang hold up no fetch."""

import http.client
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

import psycopg
import pytest

from tests.clients.live import HOST
from tests.promises import SLOW_DOMAIN, TEST_MAIL_PORT
from tests.promises.installation import Installation
from tests.promises.load import LoadResponse
from tests.promises.test_slow_callers import (
    P99_RATIO,
    ROUNDS,
    count_served,
    fetch_load,
    p99,
    running_installation,
)
from tests.slow_mail_server import MailServer, mail_server

# More than the server has threads. A person may request 20 emails a minute from one address.
WEBHOOK_THREADS, EMAIL_THREADS = 16, 18
CALLS, FEW_CALLS = 1_000, 100
TOKEN = "a" * 32


class WaitingClients:
    """Clients that save webhooks with slow names and request emails, again and again until the end."""

    def __init__(self, installation: Installation) -> None:
        self.installation, self.statuses, self.stopping = installation, Counter[str](), Event()
        self.threads = [
            *(Thread(target=self.save_webhooks, args=(number,)) for number in range(WEBHOOK_THREADS)),
            *(Thread(target=self.request_email, args=(number,)) for number in range(EMAIL_THREADS)),
        ]

    def send(self, kind: str, path: str, body: str, headers: dict[str, str]) -> None:
        connection = http.client.HTTPConnection(HOST, self.installation.port, timeout=40)
        with suppress(OSError):
            connection.request("POST", path, body, headers)
            self.statuses[f"{kind} {connection.getresponse().status}"] += 1
        connection.close()

    def save_webhooks(self, number: int) -> None:
        key = {"Authorization": f"Bearer {self.installation.facts['editor']}"}
        for turn in range(1_000):
            if self.stopping.wait(0.1):
                return
            body = {"name": f"{number} {turn}", "url": f"https://{number}-{turn}.{SLOW_DOMAIN}/"}
            headers = {**key, "Content-Type": "application/json"}
            self.send("webhook", "/api/v1/webhooks", json.dumps(body), headers)

    def request_email(self, number: int) -> None:
        headers = {
            "Cookie": f"dramatis-csrf={TOKEN}",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        body = f"csrfmiddlewaretoken={TOKEN}&email=visitor{number}%40example.com"
        self.send("email", "/accounts/password/reset/", body, headers)

    @contextmanager
    def running(self) -> Iterator[None]:
        for thread in self.threads:
            thread.start()
        try:
            yield
        finally:
            self.stopping.set()
            for thread in self.threads:
                thread.join()


def measure_fetches(
    installation: Installation, server: MailServer, fault: str, calls: int
) -> tuple[float, float, list[LoadResponse], Counter[str]]:
    """The p99 without and with clients that wait, the responses beside them, and the statuses of these."""
    with (
        installation.web(fault, **{TEST_MAIL_PORT: str(server.port)}) as web,
        fetch_load(installation, web) as load,
    ):
        load.send(50)
        alone = load.send(calls, seconds=120)
        clients = WaitingClients(installation)
        with clients.running():
            # Let them take their threads first.
            clients.stopping.wait(1)
            beside = load.send(calls, seconds=120)
        return p99(alone), p99(beside), beside, clients.statuses


def forget_emails(installation: Installation) -> None:
    """Let the clients of the next round request as many emails as those of the first one."""
    with psycopg.connect(installation.database, autocommit=True) as connection:
        connection.execute("DELETE FROM project_cache")
        connection.execute("DELETE FROM personas_dailyusage")


@pytest.mark.hard
@pytest.mark.promise("R15")
def test_slow_name_and_mail_servers_hold_up_no_fetch(tmp_path, record_property):
    with (
        running_installation(tmp_path, "postgresql") as installation,
        mail_server(is_slow=True) as server,
    ):
        rounds: list[tuple[float, float, float]] = []
        served = total = 0
        while len(rounds) < ROUNDS and (not rounds or min(rounds)[0] > P99_RATIO):
            forget_emails(installation)
            alone, beside, responses, statuses = measure_fetches(installation, server, "", CALLS)
            rounds.append((beside / alone, alone, beside))
            served, total = served + count_served(responses), total + len(responses)
            # The clients did what they were meant to do.
            assert statuses["webhook 201"] + statuses["webhook 409"] >= WEBHOOK_THREADS, statuses
            assert statuses["email 503"] >= EMAIL_THREADS - 4, statuses
    ratio, alone, beside = min(rounds)
    record_property(
        "measured",
        f"a name server and a mail server that hang: {served:,} of {total:,} fetches served, p99 "
        f"{beside * 1e3:.0f} ms beside them and {alone * 1e3:.0f} ms without ({ratio:.1f} ×)",
    )
    assert served == total
    assert ratio <= P99_RATIO


@pytest.mark.hard
@pytest.mark.planted
@pytest.mark.promise("R15")
@pytest.mark.parametrize("fault", ["resolution_in_request", "without_email_slots"])
def test_a_request_that_waits_for_a_slow_server_without_a_slot_is_found(tmp_path, fault):
    with (
        running_installation(tmp_path, "sqlite") as installation,
        mail_server(is_slow=True) as server,
    ):
        alone, beside, _, _ = measure_fetches(installation, server, fault, FEW_CALLS)
    assert beside > P99_RATIO * alone
