"""Measure server time, queries and bytes of every screen with Django's test client and all middleware."""

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

from benches.pages_screens import Screen, list_screens  # noqa: E402
from core.garbage_collection import tune_garbage_collection  # noqa: E402

ROUNDS = 12
MAX_MILLISECONDS = 120
# Only a guard against queries that grow with the number of rows.
MAX_QUERIES, MAX_BYTES = 27, 100_000
COLUMNS = ("p50 ms", "p95 ms", "× first", "queries", "KB", "KB gzip")


@dataclass
class ScreenResult:
    """Measurements of one screen."""

    screen: Screen
    status: int = 0
    queries: int = 0
    size: int = 0
    compressed_size: int = 0
    repeats: tuple[int, str] = (0, "")
    times: list[float] = field(default_factory=list)

    @property
    def is_available(self) -> bool:
        return self.status == self.screen.status

    @property
    def is_met(self) -> bool:
        is_fast = bool(self.times) and median(self.times) <= MAX_MILLISECONDS
        return (
            self.is_available and is_fast and self.queries <= MAX_QUERIES and self.compressed_size < MAX_BYTES
        )

    @property
    def verdict(self) -> str:
        if not self.is_available:
            return f"MISSING: answered {self.status}"
        return "met" if self.is_met else f"MISSED{self.format_repeats()}"

    def format_repeats(self) -> str:
        count, table_name = self.repeats
        return f": {count} times {table_name}" if self.queries > MAX_QUERIES and count > 1 else ""


def main(stage: dict[str, Any]) -> int:
    # As web processes do.
    tune_garbage_collection()
    # A page that fails is reported in the table.
    client = Client(raise_request_exception=False, headers={"host": "localhost"})
    client.cookies[stage["cookie"]] = stage["session"]
    selected = [screen for screen in list_screens(stage) if is_selected(screen, stage["only"])]
    results = [
        measure_screen(build_sender(client, screen, stage["workspace"]), screen) for screen in selected
    ]
    available = [result for result in results if result.is_available]
    # All screens in turn, so that load on the machine affects all of them.
    for _ in range(ROUNDS):
        for result in available:
            result.times.append(measure_milliseconds(build_sender(client, result.screen, stage["workspace"])))
    print_table(results)
    is_all_met = all(result.is_met for result in results)
    print(
        f"at most {MAX_MILLISECONDS} ms in the median, {MAX_QUERIES} queries and "
        f"{MAX_BYTES // 1_000} KB packed on each: "
        f"{sum(result.is_met for result in results)} of {len(results)} {'met' if is_all_met else 'MISSED'}"
    )
    return 0 if is_all_met else 1


def is_selected(screen: Screen, name_filters: Sequence[str]) -> bool:
    return not name_filters or any(text in screen.name for text in name_filters)


def build_sender(client: Client, screen: Screen, workspace: str) -> Callable[[], HttpResponse]:
    path = f"/w/{workspace}/{screen.path}"
    headers = {"HX-Request": "true"} if screen.is_fragment else {}
    if screen.form_data:
        return lambda: client.post(path, dict(screen.form_data), headers=headers)  # type: ignore[return-value]  # as good
    return lambda: client.get(path, headers=headers)  # type: ignore[return-value]  # as good


def measure_screen(send: Callable[[], HttpResponse], screen: Screen) -> ScreenResult:
    """Measure the second response; the first fills caches and updates the session."""
    send()
    with CaptureQueriesContext(connection) as caught:
        response = send()
    queries = [query["sql"] for query in caught.captured_queries]
    body = b"".join(response.streaming_content) if response.streaming else response.content  # type: ignore[attr-defined]  # one or the other
    return ScreenResult(
        screen,
        response.status_code,
        len(queries),
        len(body),
        len(gzip.compress(body, 6)),
        find_most_queried_table(queries),
    )


def find_most_queried_table(queries: Sequence[str]) -> tuple[int, str]:
    """Return the table that is queried most often, with the count."""
    tables = [sql.partition(" FROM ")[2].split(" ")[0].strip('"') or sql[:30] for sql in queries]
    counts = {name: tables.count(name) for name in tables}
    name = max(counts, key=lambda result: counts[result], default="")
    return counts.get(name, 0), name


def measure_milliseconds(function: Callable[[], object]) -> float:
    started_at = perf_counter()
    function()
    return (perf_counter() - started_at) * 1_000


def print_table(results: Sequence[ScreenResult]) -> None:
    print(f"server time of {ROUNDS} requests each through Django's test client, one at a time")
    print(f"{'':22}" + "".join(f"{name:>9}" for name in COLUMNS))
    first = median(results[0].times) if results and results[0].times else 0.0
    for result in results:
        print(f"{result.screen.name:22}{format_figures(result, first):54}  {result.verdict}")


def format_figures(result: ScreenResult, first: float) -> str:
    if not result.times:
        return ""
    p95 = quantiles(result.times, n=20)[-1]
    middle = median(result.times)
    return (
        f"{middle:>9.1f}{p95:>9.1f}{middle / (first or middle):>9.1f}{result.queries:>9}"
        f"{result.size / 1_000:>9.1f}{result.compressed_size / 1_000:>9.1f}"
    )


if __name__ == "__main__":
    sys.exit(main(json.load(sys.stdin)))
