"""Every promise has a proof and a planted fault."""

from pathlib import Path

import pytest

from tests.promises.goals import PROMISES
from tests.promises.listing import list_promise_tests

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
