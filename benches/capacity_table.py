"""What an installation takes and carries, computed from measured sizes and named assumptions; pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

HOURS_A_MONTH, DAYS_A_MONTH = 730, 30
SECONDS_A_MONTH = HOURS_A_MONTH * 3_600
LEAST_MONTHS = 6
SIZES = (1, 100, 10_000)
# The line of docs/benchmarks.md that says how many fetches PostgreSQL and the web on one machine carry.
FETCHES = re.compile(r"^postgresql: .*?^fetch +16 +([\d,]+) ", re.DOTALL | re.MULTILINE)
UNITS = ("B", "KB", "MB", "GB", "TB", "PB")


@dataclass(frozen=True)
class Measured:
    """Bytes on the disk, with indexes, of one more of each; and fetches a second on the machine."""

    ledger_row: float
    version: float
    record: float
    agent: float
    fetches: float


@dataclass(frozen=True)
class Assumed:
    """What a usual workspace has and does."""

    agents: int = 30
    channels: int = 3
    # Each agent on each channel is one bot, around the clock; a 304 leaves a row as well.
    fetches_an_hour: int = 12
    # The busiest second against the mean.
    peak: float = 3.0
    edits_a_day: int = 20
    # A shared soul reaches many, a memory one agent's.
    prompts_an_edit: int = 10
    # As a new workspace has it; six are the least.
    ledger_months: int = 24
    # Of what the machine carried in the bench; the rest is for pages, builds and bad days.
    used: float = 0.5

    @property
    def bots(self) -> int:
        return self.agents * self.channels


@dataclass(frozen=True)
class Capacity:
    """One column of the table; bytes, and counts of a month where nothing else is said."""

    workspaces: int
    bots: int
    fetches: int
    mean: float
    busiest: float
    machines: int
    ledger: float
    versions: float
    records: float
    standing: float
    year: float
    rolling: float

    @property
    def growth(self) -> float:
        return self.ledger + self.versions + self.records


def capacity(measured: Measured, assumed: Assumed, workspaces: int) -> Capacity:
    bots = workspaces * assumed.bots
    fetches = bots * assumed.fetches_an_hour * HOURS_A_MONTH
    mean = fetches / SECONDS_A_MONTH
    busiest = mean * assumed.peak
    edits = workspaces * assumed.edits_a_day * DAYS_A_MONTH
    ledger = fetches * measured.ledger_row
    versions = edits * assumed.prompts_an_edit * measured.version
    records = edits * measured.record
    standing = workspaces * assumed.agents * measured.agent
    return Capacity(
        workspaces=workspaces,
        bots=bots,
        fetches=fetches,
        mean=mean,
        busiest=busiest,
        machines=ceil(busiest / (measured.fetches * assumed.used)),
        ledger=ledger,
        versions=versions,
        records=records,
        standing=standing,
        year=standing + min(12, assumed.ledger_months) * ledger + 12 * (versions + records),
        # The ledger when as much goes as comes; versions and records stay for ever.
        rolling=assumed.ledger_months * ledger,
    )


def workspaces_of_a_machine(measured: Measured, assumed: Assumed) -> int:
    one = capacity(measured, assumed, 1)
    return int(measured.fetches * assumed.used / one.busiest)


def fetches_told(benchmarks: str) -> float:
    """Fetches a second at 16 connections on PostgreSQL, as docs/benchmarks.md has it."""
    found = FETCHES.search(benchmarks)
    if found is None:
        raise ValueError("docs/benchmarks.md no longer tells the fetches at 16 connections.")
    return float(found[1].replace(",", ""))


# --- in words ------------------------------------------------------------------------------------------


def bytes_told(count: float) -> str:
    """Three digits that count, in powers of a thousand as disks are sold."""
    size, unit = float(count), 0
    while size >= 1_000 and unit < len(UNITS) - 1:
        size, unit = size / 1_000, unit + 1
    digits = 0 if size >= 100 or not unit else 1
    return f"{size:,.{digits}f} {UNITS[unit]}"


def rate_told(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"


def table(measured: Measured, assumed: Assumed, sizes: Sequence[int] = SIZES) -> str:
    found = [capacity(measured, assumed, size) for size in sizes]
    rows = {
        "Bots": [f"{one.bots:,}" for one in found],
        "Fetches a month": [f"{one.fetches:,}" for one in found],
        "Fetches a second, mean": [rate_told(one.mean) for one in found],
        "Fetches a second, busiest": [rate_told(one.busiest) for one in found],
        "Machines of this size for them": [f"{one.machines:,}" for one in found],
        "Ledger a month": [bytes_told(one.ledger) for one in found],
        "Versions a month": [bytes_told(one.versions) for one in found],
        "Records and audit a month": [bytes_told(one.records) for one in found],
        "Together a month": [bytes_told(one.growth) for one in found],
        "On the first day": [bytes_told(one.standing) for one in found],
        "After a year": [bytes_told(one.year) for one in found],
        f"Ledger of {assumed.ledger_months} months": [bytes_told(one.rolling) for one in found],
        f"Ledger of {LEAST_MONTHS} months, the least": [
            bytes_told(LEAST_MONTHS * one.ledger) for one in found
        ],
    }
    head = ["Workspaces", *(f"{size:,}" for size in sizes)]
    lines = [head, ["---", *["---:"] * len(sizes)], *([name, *cells] for name, cells in rows.items())]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def words(measured: Measured, assumed: Assumed) -> str:
    """What the table is computed from."""
    weights = f"Measured: {measured.ledger_row:,.0f} bytes a ledger row, {measured.version:,.0f} a version, "
    weights += f"{measured.record:,.0f} a changed record, {measured.agent:,.0f} an agent as it begins; "
    weights += f"{measured.fetches:,.0f} fetches a second (docs/benchmarks.md)."
    usual = f"Assumed: {assumed.agents} agents on {assumed.channels} channels, a bot each; "
    usual += f"{assumed.fetches_an_hour} fetches a bot and hour, day and night; "
    usual += f"busiest second {assumed.peak:g} times the mean; {assumed.edits_a_day} edits a day, "
    usual += f"each changing {assumed.prompts_an_edit} prompts; machines used to {assumed.used:.0%}."
    most = workspaces_of_a_machine(measured, assumed)
    return f"{weights}\n{usual}\nBy fetches alone one such machine carries {most:,} such workspaces."
