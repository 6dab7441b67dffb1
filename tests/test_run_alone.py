"""Tests marked `alone` have no other test of a parallel run beside them."""

import json
import subprocess
import sys

import pytest

from tests.layout import ROOT

FILE = """
import json, pathlib, time
import pytest

def note(name):
    began = time.monotonic()
    time.sleep(0.3)
    with pathlib.Path(r"{times}").open("a") as file:
        file.write(json.dumps([name, began, time.monotonic()]) + "\\n")

{marker}
def test_alone():
    note("alone")

@pytest.mark.parametrize("number", range(5))
def test_other(number):
    note("other")
"""
SETTINGS = (
    "[pytest]\nmarkers =\n  alone: runs alone\naddopts = -p no:randomly -p no:django -p no:schemathesis"
)


def run_in_two_processes(folder, marker):
    """Run the tests of FILE; return the times of those that ran beside the lone one."""
    (folder / "var").mkdir()
    (folder / "pytest.ini").write_text(SETTINGS)
    (folder / "test_times.py").write_text(FILE.format(times=folder / "times", marker=marker))
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
    assert "6 passed" in result.stdout, result.stdout + result.stderr
    rows = [json.loads(line) for line in (folder / "times").read_text().splitlines()]
    [lone] = [row for row in rows if row[0] == "alone"]
    return [row for row in rows if row[0] == "other" and row[1] < lone[2] and row[2] > lone[1]]


def test_other_processes_wait_for_it(tmp_path):
    assert run_in_two_processes(tmp_path, "@pytest.mark.alone") == []


@pytest.mark.planted
def test_without_the_mark_another_test_runs_beside_it(tmp_path):
    assert run_in_two_processes(tmp_path, "") != []
