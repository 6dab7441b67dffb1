"""Tests marked `alone` have no other test of a parallel run beside them."""

import subprocess
import sys

import pytest

from tests.layout import ROOT

# The lone test waits for another one to begin, but not longer than `patience`.
FILE = """
import pathlib, time
import pytest

BEGUN, ENDED = pathlib.Path(r"{folder}", "begun"), pathlib.Path(r"{folder}", "ended")

def count_begun():
    return len(BEGUN.read_text()) if BEGUN.exists() else 0

{marker}
def test_alone():
    before, deadline = count_begun(), time.monotonic() + {patience}
    while count_begun() == before and time.monotonic() < deadline:
        time.sleep(0.01)
    ENDED.write_text(str(count_begun()))

@pytest.mark.parametrize("number", range(12))
def test_other(number):
    with BEGUN.open("a") as file:
        file.write(".")
    time.sleep(0.1)
"""
SETTINGS = (
    "[pytest]\nmarkers =\n  alone: runs alone\naddopts = -p no:randomly -p no:django -p no:schemathesis"
)


def count_begun_beside_it(folder, marker, patience):
    """Run the tests of FILE in two processes; return how many had begun when the lone one ended."""
    (folder / "var").mkdir()
    (folder / "pytest.ini").write_text(SETTINGS)
    (folder / "test_order.py").write_text(FILE.format(folder=folder, marker=marker, patience=patience))
    options = ["-q", "-n", "2", "--dist", "worksteal", "-p", "tests.run_alone"]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "DRAMATIS_VAR": str(folder / "var" / "gw0"), "PATH": "/usr/bin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "13 passed" in result.stdout, result.stdout + result.stderr
    return int((folder / "ended").read_text())


def test_other_processes_wait_for_it(tmp_path):
    assert count_begun_beside_it(tmp_path, "@pytest.mark.alone", patience=1) == 0


@pytest.mark.planted
def test_without_the_mark_another_test_runs_beside_it(tmp_path):
    assert count_begun_beside_it(tmp_path, "", patience=30) > 0
