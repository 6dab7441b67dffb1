"""Pytest plugin: prints one line per promise after the `hard` tests, and on request writes docs/promises.md.

A test that proves a promise is marked `promise("R3")`. What it measures is recorded as a property:

- `record_property("measured", …)` is a text with figures.
- An integer is summed over all tests: `record_property("bytes flipped", 40)`.
- A float is a time in seconds, of which the longest counts: `record_property("longest answer", 0.3)`.
- `promise("R8", counts="bodies")` counts each passed test, for parametrized tests.

A second argument of the mark is text without a figure, which the table lists after "shown:".
"""

import json
import os
import platform
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.promises.goals import PROMISES, Promise

PROMISE, PLANTED, MEASURED, SHOWS = "promise", "planted fault", "measured", "shows"
# Environment variable: the path of the document to write; if unset, the table is only printed.
DOCUMENT = "PROMISES"
# Environment variable: the path of the reports of both runs of `dev.py test --hard`.
REPORTS = "PROMISE_REPORTS"
NOT_RUN = "not run"
COMMAND = "PROMISES=docs/promises.md python3 dev.py test --hard"


@dataclass
class Proof:
    """The results of the tests of one promise."""

    promise: Promise
    figures: list[str] = field(default_factory=list)
    # Sums of the integer properties of all tests, and the longest times.
    counts: Counter[str] = field(default_factory=Counter)
    longest: dict[str, float] = field(default_factory=dict)
    shown: list[str] = field(default_factory=list)
    passed: int = 0
    failed: int = 0
    faults: int = 0
    caught: int = 0
    seconds: float = 0.0

    @property
    def verdict(self) -> str:
        if not self.passed + self.failed:
            return NOT_RUN
        return "no" if self.failed else "yes"

    @property
    def measured(self) -> str:
        """The figures, then what was shown without one."""
        counted = [f"{count:,} {what}" for what, count in self.counts.items()]
        longest = [f"{what} {seconds:.2f} s" for what, seconds in self.longest.items()]
        shown = [f"shown: {'; '.join(dict.fromkeys(self.shown))}"] if self.shown else []
        parts = [*counted, *longest, *dict.fromkeys(self.figures), *shown]
        return "; ".join(parts) or ("shown" if self.passed else "")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Copy the marks into the reports, because with xdist the tests run in other processes."""
    for item in items:
        for mark in item.iter_markers(PROMISE):
            item.user_properties.append((PROMISE, mark.args[0]))
            item.user_properties += [(SHOWS, text) for text in mark.args[1:]]
            item.user_properties += [(name, 1) for name in mark.kwargs.values()]
            # A control runs the same proof without a fault, so that its findings come from the faults.
            if item.get_closest_marker("planted") and not item.get_closest_marker("control"):
                item.user_properties.append((PLANTED, mark.args[0]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [one for group in terminalreporter.stats.values() for one in group if hasattr(one, "when")]
    reports = add_reports_of_earlier_run(terminalreporter.config, reports)
    if not any("hard" in getattr(one, "keywords", ()) and list_properties(one, PROMISE) for one in reports):
        return
    proofs = collect_proofs(reports)
    terminalreporter.section("promises")
    for proof in proofs:
        if proof.verdict != NOT_RUN:
            terminalreporter.write_line(format_line(proof))
    if path := os.environ.get(DOCUMENT):
        Path(path).write_text(document(proofs, machine()))
        terminalreporter.write_line(f"Written to {path}.")


def add_reports_of_earlier_run(config: pytest.Config, reports: list[Any]) -> list[Any]:
    """Return the reports of this run and of the one before it, and store them for the next one."""
    if REPORTS not in os.environ:
        return reports
    path, hook = Path(os.environ[REPORTS]), config.hook
    earlier = json.loads(path.read_text()) if path.exists() else []
    these = [hook.pytest_report_to_serializable(config=config, report=one) for one in reports]
    path.write_text(json.dumps([*earlier, *these]))
    return [*(hook.pytest_report_from_serializable(config=config, data=one) for one in earlier), *reports]


def list_properties(report: Any, name: str) -> list[str]:
    return [value for key, value in report.user_properties if key == name]


def collect_proofs(reports: Iterable[Any]) -> list[Proof]:
    proofs = {promise.name: Proof(promise) for promise in PROMISES}
    for report in reports:
        for name in dict.fromkeys(list_properties(report, PROMISE)):
            add(proofs[name], report, is_planted=name in list_properties(report, PLANTED))
    return list(proofs.values())


def add(proof: Proof, report: Any, *, is_planted: bool) -> None:
    """Add a report; setup counts towards the time, and a failed setup counts as a failure."""
    proof.seconds += report.duration
    is_passed = report.when == "call" and report.passed
    proof.failed += report.failed
    proof.faults += is_planted and report.when == "call"
    proof.caught += is_planted and is_passed
    proof.passed += is_passed
    # Measurements count whether or not the test passed.
    proof.figures += list_properties(report, MEASURED) if report.when == "call" else []
    if is_passed:
        for name, value in report.user_properties:
            if isinstance(value, int):
                proof.counts[name] += value
            elif isinstance(value, float):
                proof.longest[name] = max(value, proof.longest.get(name, 0.0))
        proof.shown += list_properties(report, SHOWS)


def format_line(proof: Proof) -> str:
    faults = f"{proof.caught} of {proof.faults} faults caught"
    start = f"{proof.promise.name:>4} {proof.verdict:<8}{proof.seconds:>6.0f} s  {faults:<24}"
    return f"{start}{proof.promise.title}: {proof.measured}"


def machine() -> str:
    return f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores"


def document(proofs: Sequence[Proof], where: str) -> str:
    head = ["Promise", "Goal", "Measured", "Planted faults caught", "Time", "Passed"]
    rows = [
        [
            f"{proof.promise.name}: {proof.promise.title}",
            proof.promise.goal,
            proof.measured,
            f"{proof.caught} of {proof.faults}",
            f"{proof.seconds:.0f} s",
            proof.verdict,
        ]
        for proof in proofs
    ]
    lines = [
        " | ".join(cell.replace("|", "\\|") for cell in row) for row in (head, ["---"] * len(head), *rows)
    ]
    caught, planted = sum(one.caught for one in proofs), sum(one.faults for one in proofs)
    table = "\n".join(f"| {line} |" for line in lines)
    return f"""# Promises

What Dramatis guarantees, with the results of the last run of the proofs. Created by

```sh
{COMMAND}
```

on {where}. Times are summed over the tests of a promise, which run in parallel. “Shown” marks what a test
proves without a figure. Each guard is also removed on purpose, and the proof must detect it: {caught} of
{planted} such faults were caught. Kills prove that a crashed process loses nothing. For a power failure this
depends on `synchronous_commit` and `synchronous=FULL`, which a test of the settings checks.

{table}
"""
