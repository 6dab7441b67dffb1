"""The capacity table: each figure is computed from measurements and assumptions."""

from pathlib import Path

import pytest

from benches.capacity_table import (
    Assumptions,
    Measurements,
    compute_capacity,
    count_workspaces_per_machine,
    format_basis,
    format_bytes,
    format_table,
    parse_fetch_rate,
)

ROOT = Path(__file__).resolve().parents[3]
ROUND = Measurements(ledger_row=500, version=2_000, record=1_000, agent=10_000, fetches=1_000)
SMALL = Assumptions(
    agents=2, channels=5, fetches_an_hour=36, peak=2.0, edits_a_day=10, prompts_an_edit=4, ledger_months=3
)


def test_every_figure_follows_from_the_measured_and_the_assumed():
    result = compute_capacity(ROUND, SMALL, 100)
    assert result.bots == 1_000
    assert result.fetches == 1_000 * 36 * 730
    assert (result.mean, result.busiest) == (10.0, 20.0)
    assert result.machines == 1
    assert result.ledger == result.fetches * 500
    assert result.versions == 100 * 10 * 30 * 4 * 2_000
    assert result.records == 100 * 10 * 30 * 1_000
    assert result.initial == 100 * 2 * 10_000
    assert result.growth == result.ledger + result.versions + result.records
    assert result.year == result.initial + 3 * result.ledger + 12 * (result.versions + result.records)
    assert result.rolling == 3 * result.ledger


def test_machines_are_counted_by_the_busiest_second_and_only_half_used():
    assert compute_capacity(ROUND, SMALL, 2_500).machines == 1
    assert compute_capacity(ROUND, SMALL, 2_501).machines == 2
    assert count_workspaces_per_machine(ROUND, SMALL) == 2_500


def test_a_hundred_workspaces_take_a_hundred_times_as_much():
    one, many = compute_capacity(ROUND, SMALL, 1), compute_capacity(ROUND, SMALL, 100)
    assert many.growth == pytest.approx(100 * one.growth)
    assert many.year == pytest.approx(100 * one.year)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1_500, "1.5 KB"), (234_000_000, "234 MB"), (3.14e12, "3.1 TB")],
)
def test_sizes_are_formatted_in_powers_of_a_thousand(count, text):
    assert format_bytes(count) == text


def test_the_fetches_are_those_of_the_benchmarks_page():
    page = "sqlite: x\nfetch 16 9,999 1\npostgresql: y\nfetch  1  874 1\nfetch   16   2,074   7.18\n"
    assert parse_fetch_rate(page) == 2_074
    assert parse_fetch_rate((ROOT / "docs" / "benchmarks.md").read_text()) > 0
    with pytest.raises(ValueError, match="no longer"):
        parse_fetch_rate("nothing")


def test_the_page_holds_a_table_of_this_shape():
    """Figures differ between machines; rows and columns do not."""
    page = (ROOT / "docs" / "scaling.md").read_text()
    for line in format_table(ROUND, Assumptions()).splitlines():
        assert line.split("|")[1] in page, line
    assumed = format_basis(ROUND, Assumptions()).splitlines()[1]
    assert assumed in page
