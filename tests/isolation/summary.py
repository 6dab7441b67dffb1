"""Pytest hook: prints the number of isolation cells at the end of a run."""

import pytest

CELLS, LEAKS = "isolation cells", "isolation findings"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    # Read from the reports, because with xdist the tests run in other processes.
    groups = terminalreporter.stats.values()
    reports = [report for group in groups for report in group if getattr(report, "when", "") == "call"]
    noted = [pair for report in reports for pair in getattr(report, "user_properties", ())]
    cells = sum(count for name, count in noted if name == CELLS)
    findings = sum(count for name, count in noted if name == LEAKS)
    if cells:
        terminalreporter.write_line(f"isolation: {cells:,} cells, {findings:,} findings")
