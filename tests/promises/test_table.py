"""Every promise has a proof and a planted fault; the table shows their results."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.promises.goals import PROMISES
from tests.promises.listing import list_promise_tests
from tests.promises.table import collect_proofs, document, format_line, pytest_collection_modifyitems

TESTS = Path(__file__).resolve().parent.parent
MOST_NAMES = {promise.name for promise in PROMISES}
LEAST_FAULTS = 20


def find_unproved(folder: Path) -> dict[str, str]:
    """Find promises without a proof or a planted fault."""
    rows = list_promise_tests(folder)
    proved = {row.promise for row in rows if not row.is_planted}
    guarded = {row.promise for row in rows if row.is_planted}
    return dict.fromkeys(MOST_NAMES - guarded, "no planted fault") | dict.fromkeys(
        MOST_NAMES - proved, "no proof"
    )


def test_every_promise_has_a_proof_and_a_planted_fault():
    assert find_unproved(TESTS) == {}
    assert {row.promise for row in list_promise_tests(TESTS)} == MOST_NAMES


def test_there_are_enough_planted_faults():
    assert len([row for row in list_promise_tests(TESTS) if row.is_planted]) >= LEAST_FAULTS


@pytest.mark.planted
def test_an_unproved_promise_is_found(tmp_path):
    marked = '@pytest.mark.planted\n@pytest.mark.promise("R3")\ndef test_a():\n    pass\n'
    (tmp_path / "test_some.py").write_text(f"import pytest\n\n{marked}")
    missing = find_unproved(tmp_path)
    assert missing["R3"] == "no proof"
    assert set(missing) == MOST_NAMES
    (tmp_path / "test_more.py").write_text(
        'import pytest\npytestmark = [pytest.mark.promise("R3")]\n\ndef test_b():\n    pass\n'
    )
    assert set(find_unproved(tmp_path)) == MOST_NAMES - {"R3"}


def report(*properties: tuple[str, object], when: str = "call", outcome: str = "passed") -> Any:
    return SimpleNamespace(
        when=when,
        duration=1.5,
        passed=outcome == "passed",
        failed=outcome == "failed",
        user_properties=list(properties),
    )


def test_the_table_summarises_the_reports():
    proofs = collect_proofs(
        [
            report(("promise", "R4"), when="setup"),
            report(("promise", "R4"), ("measured", "20 kills, 0 missing"), ("calls", 700)),
            report(("promise", "R4"), ("calls", 800)),
            report(("promise", "R4"), ("planted fault", "R4")),
            report(("promise", "R3"), ("shows", "800 versions"), outcome="failed"),
        ]
    )
    by_name = {proof.promise.name: proof for proof in proofs}
    assert list(by_name) == [promise.name for promise in PROMISES]
    four, three = by_name["R4"], by_name["R3"]
    assert (four.verdict, four.caught, four.faults, four.seconds) == ("yes", 1, 1, 6.0)
    assert (three.verdict, three.measured, by_name["R9"].verdict) == ("no", "", "not run")
    assert "1,500 calls; 20 kills, 0 missing" in format_line(four)
    page = document(proofs, "two cores")
    assert "| R4: What was acknowledged is recorded |" in page
    assert "20 kills, 0 missing | 1 of 1 | 6 s | yes |" in page
    assert "R14" in page


def test_figures_are_measured_and_everything_else_is_only_shown():
    proofs = collect_proofs(
        [
            report(("promise", "R8"), ("bodies", 1), ("longest answer", 0.25)),
            report(("promise", "R8"), ("bodies", 1), ("longest answer", 0.5), ("shows", "nothing lost")),
            report(("promise", "R8"), ("bodies", 1), ("longest answer", 0.75), outcome="failed"),
            report(("promise", "R9"), ("shows", "a cut tail found")),
            report(("promise", "R10")),
        ]
    )
    measured = {proof.promise.name: proof.measured for proof in proofs}
    assert measured["R8"] == "2 bodies; longest answer 0.50 s; shown: nothing lost"
    assert (measured["R9"], measured["R10"], measured["R11"]) == ("shown: a cut tail found", "shown", "")


def test_a_mark_counts_its_tests():
    mark = pytest.mark.promise("R8", "nothing lost", counts="bodies").mark
    item: Any = SimpleNamespace(
        user_properties=[], iter_markers=lambda _: [mark], get_closest_marker=lambda _: None
    )
    pytest_collection_modifyitems([item])
    assert item.user_properties == [("promise", "R8"), ("shows", "nothing lost"), ("bodies", 1)]


def test_a_failed_setup_fails_the_proof():
    [proof] = [
        one
        for one in collect_proofs([report(("promise", "R6"), when="setup", outcome="failed")])
        if one.failed
    ]
    assert proof.verdict == "no"
