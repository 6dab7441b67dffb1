"""Server time, queries and bytes of every screen, through Django's test client and all middleware."""

import gzip
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles
from time import perf_counter
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
django.setup()

from django.db import connection  # noqa: E402  # Django first
from django.http import HttpResponse  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import CaptureQueriesContext  # noqa: E402

from benches.pages_screens import Screen, screens  # noqa: E402

ROUNDS = 12
MOST_QUERIES, MOST_BYTES = 25, 100_000
COLUMNS = ("p50 ms", "p95 ms", "× first", "queries", "KB", "KB gzip")


@dataclass
class Found:
    """What is known of one screen."""

    screen: Screen
    status: int = 0
    queries: int = 0
    size: int = 0
    packed: int = 0
    repeats: tuple[int, str] = (0, "")
    times: list[float] = field(default_factory=list)

    @property
    def is_there(self) -> bool:
        return self.status == self.screen.status

    @property
    def is_met(self) -> bool:
        return self.is_there and self.queries <= MOST_QUERIES and self.packed < MOST_BYTES

    @property
    def verdict(self) -> str:
        if not self.is_there:
            return f"MISSING: answered {self.status}"
        return "met" if self.is_met else f"MISSED{self.told_of_repeats()}"

    def told_of_repeats(self) -> str:
        count, words = self.repeats
        return f": {count} times {words}" if self.queries > MOST_QUERIES and count > 1 else ""


def main(told: dict[str, Any]) -> int:
    # A page that fails is told in the table.
    client = Client(raise_request_exception=False, headers={"host": "localhost"})
    client.cookies[told["cookie"]] = told["session"]
    asked = [screen for screen in screens(told) if is_asked(screen, told["only"])]
    found = [looked_at(ask(client, screen, told["workspace"]), screen) for screen in asked]
    there = [one for one in found if one.is_there]
    # All in turn, so that a busy moment of the machine meets all of them.
    for _ in range(ROUNDS):
        for one in there:
            one.times.append(timed(ask(client, one.screen, told["workspace"])))
    table(found)
    met = all(one.is_met for one in found)
    print(
        f"at most {MOST_QUERIES} queries and {MOST_BYTES // 1_000} KB packed on each: "
        f"{sum(one.is_met for one in found)} of {len(found)} {'met' if met else 'MISSED'}"
    )
    return 0 if met else 1


def is_asked(screen: Screen, only: Sequence[str]) -> bool:
    return not only or any(word in screen.name for word in only)


def ask(client: Client, screen: Screen, workspace: str) -> Callable[[], HttpResponse]:
    path = f"/w/{workspace}/{screen.path}"
    headers = {"HX-Request": "true"} if screen.is_fragment else {}
    if screen.posted:
        return lambda: client.post(path, dict(screen.posted), headers=headers)  # type: ignore[return-value]  # as good
    return lambda: client.get(path, headers=headers)  # type: ignore[return-value]  # as good


def looked_at(asked: Callable[[], HttpResponse], screen: Screen) -> Found:
    """The first answer fills caches and touches the session; the second is looked at."""
    asked()
    with CaptureQueriesContext(connection) as caught:
        answer = asked()
    said = [query["sql"] for query in caught.captured_queries]
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content  # type: ignore[attr-defined]  # one or the other
    return Found(
        screen, answer.status_code, len(said), len(body), len(gzip.compress(body, 6)), most_repeated(said)
    )


def most_repeated(said: Sequence[str]) -> tuple[int, str]:
    """Which table is asked most often."""
    tables = [sql.partition(" FROM ")[2].split(" ")[0].strip('"') or sql[:30] for sql in said]
    counts = {name: tables.count(name) for name in tables}
    name = max(counts, key=lambda one: counts[one], default="")
    return counts.get(name, 0), name


def timed(work: Callable[[], object]) -> float:
    began = perf_counter()
    work()
    return (perf_counter() - began) * 1_000


def table(found: Sequence[Found]) -> None:
    print(f"server time of {ROUNDS} requests each through Django's test client, one at a time")
    print(f"{'':22}" + "".join(f"{name:>9}" for name in COLUMNS))
    first = median(found[0].times) if found and found[0].times else 0.0
    for one in found:
        print(f"{one.screen.name:22}{figures(one, first):54}  {one.verdict}")


def figures(one: Found, first: float) -> str:
    if not one.times:
        return ""
    late = quantiles(one.times, n=20)[-1]
    middle = median(one.times)
    return (
        f"{middle:>9.1f}{late:>9.1f}{middle / (first or middle):>9.1f}{one.queries:>9}"
        f"{one.size / 1_000:>9.1f}{one.packed / 1_000:>9.1f}"
    )


if __name__ == "__main__":
    sys.exit(main(json.load(sys.stdin)))
