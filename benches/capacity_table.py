"""Capacity table: storage and machines of an installation, computed from measured sizes and assumptions."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

HOURS_A_MONTH, DAYS_A_MONTH = 730, 30
SECONDS_A_MONTH = HOURS_A_MONTH * 3_600
MIN_MONTHS = 6
SIZES = (1, 100, 10_000)
# The line of docs/benchmarks.md with the fetches per second of one machine with PostgreSQL and web server.
FETCHES = re.compile(r"^postgresql: .*?^fetch +16 +([\d,]+) ", re.DOTALL | re.MULTILINE)
UNITS = ("B", "KB", "MB", "GB", "TB", "PB")


@dataclass(frozen=True)
class Measurements:
    """Bytes on disk per row, with indexes; and fetches per second of one machine."""

    ledger_row: float
    version: float
    record: float
    agent: float
    fetches: float


@dataclass(frozen=True)
class Assumptions:
    """Size and activity of a typical workspace."""

    agents: int = 30
    channels: int = 3
    # Each agent on each channel is one bot that runs all day; a 304 writes a ledger row too.
    fetches_an_hour: int = 12
    # Ratio of the busiest second to the mean.
    peak: float = 3.0
    edits_a_day: int = 20
    # An edit of a shared soul changes many prompts, an edit of a memory those of one agent.
    prompts_an_edit: int = 10
    # The default of a new workspace; the minimum is six.
    ledger_months: int = 24
    # Share of the benchmark's fetch rate; the rest is for pages, builds and load peaks.
    used: float = 0.5

    @property
    def bots(self) -> int:
        return self.agents * self.channels


@dataclass(frozen=True)
class Capacity:
    """One column of the table: bytes and counts per month, unless a field says otherwise."""

    workspaces: int
    bots: int
    fetches: int
    mean: float
    busiest: float
    machines: int
    ledger: float
    versions: float
    records: float
    initial: float
    year: float
    rolling: float

    @property
    def growth(self) -> float:
        return self.ledger + self.versions + self.records


def compute_capacity(measurements: Measurements, assumptions: Assumptions, workspaces: int) -> Capacity:
    bots = workspaces * assumptions.bots
    fetches = bots * assumptions.fetches_an_hour * HOURS_A_MONTH
    mean = fetches / SECONDS_A_MONTH
    busiest = mean * assumptions.peak
    edits = workspaces * assumptions.edits_a_day * DAYS_A_MONTH
    ledger = fetches * measurements.ledger_row
    versions = edits * assumptions.prompts_an_edit * measurements.version
    records = edits * measurements.record
    initial = workspaces * assumptions.agents * measurements.agent
    return Capacity(
        workspaces=workspaces,
        bots=bots,
        fetches=fetches,
        mean=mean,
        busiest=busiest,
        machines=ceil(busiest / (measurements.fetches * assumptions.used)),
        ledger=ledger,
        versions=versions,
        records=records,
        initial=initial,
        year=initial + min(12, assumptions.ledger_months) * ledger + 12 * (versions + records),
        # The ledger once retention deletes as much as is added; versions and records are never deleted.
        rolling=assumptions.ledger_months * ledger,
    )


def count_workspaces_per_machine(measurements: Measurements, assumptions: Assumptions) -> int:
    single = compute_capacity(measurements, assumptions, 1)
    return int(measurements.fetches * assumptions.used / single.busiest)


def parse_fetch_rate(benchmarks: str) -> float:
    """Return the fetches per second at 16 connections on PostgreSQL from docs/benchmarks.md."""
    match = FETCHES.search(benchmarks)
    if match is None:
        raise ValueError("docs/benchmarks.md no longer tells the fetches at 16 connections.")
    return float(match[1].replace(",", ""))


# --- formatting ----------------------------------------------------------------------------------------


def format_bytes(count: float) -> str:
    """Format with about three significant digits, in powers of a thousand."""
    size, unit = float(count), 0
    while size >= 1_000 and unit < len(UNITS) - 1:
        size, unit = size / 1_000, unit + 1
    digits = 0 if size >= 100 or not unit else 1
    return f"{size:,.{digits}f} {UNITS[unit]}"


def format_rate(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"


def format_table(measurements: Measurements, assumptions: Assumptions, sizes: Sequence[int] = SIZES) -> str:
    columns = [compute_capacity(measurements, assumptions, size) for size in sizes]
    rows = {
        "Bots": [f"{column.bots:,}" for column in columns],
        "Fetches a month": [f"{column.fetches:,}" for column in columns],
        "Fetches a second, mean": [format_rate(column.mean) for column in columns],
        "Fetches a second, busiest": [format_rate(column.busiest) for column in columns],
        "Machines of this size for them": [f"{column.machines:,}" for column in columns],
        "Ledger a month": [format_bytes(column.ledger) for column in columns],
        "Versions a month": [format_bytes(column.versions) for column in columns],
        "Records and audit a month": [format_bytes(column.records) for column in columns],
        "Together a month": [format_bytes(column.growth) for column in columns],
        "On the first day": [format_bytes(column.initial) for column in columns],
        "After a year": [format_bytes(column.year) for column in columns],
        f"Ledger of {assumptions.ledger_months} months": [format_bytes(column.rolling) for column in columns],
        f"Ledger of {MIN_MONTHS} months, the least": [
            format_bytes(MIN_MONTHS * column.ledger) for column in columns
        ],
    }
    heading = ["Workspaces", *(f"{size:,}" for size in sizes)]
    lines = [heading, ["---", *["---:"] * len(sizes)], *([name, *cells] for name, cells in rows.items())]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def format_basis(measurements: Measurements, assumptions: Assumptions) -> str:
    """Format the measurements and assumptions behind the table."""
    weights = f"Measured: {measurements.ledger_row:,.0f} bytes a ledger row, "
    weights += f"{measurements.version:,.0f} a version, "
    weights += (
        f"{measurements.record:,.0f} a changed record, {measurements.agent:,.0f} an agent as it begins; "
    )
    weights += f"{measurements.fetches:,.0f} fetches a second (docs/benchmarks.md)."
    typical = f"Assumed: {assumptions.agents} agents on {assumptions.channels} channels, a bot each; "
    typical += f"{assumptions.fetches_an_hour} fetches a bot and hour, day and night; "
    typical += f"busiest second {assumptions.peak:g} times the mean; {assumptions.edits_a_day} edits a day, "
    typical += (
        f"each changing {assumptions.prompts_an_edit} prompts; machines used to {assumptions.used:.0%}."
    )
    workspaces = count_workspaces_per_machine(measurements, assumptions)
    return f"{weights}\n{typical}\nBy fetches alone one such machine carries {workspaces:,} such workspaces."
