"""Run existing tests on a database that is distributed over a Citus cluster (TEST_DATABASE=citus).

They run in processes of their own, because the database of a test run is chosen at its start.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.citus.installation import find_programs

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.hard,
    pytest.mark.skipif(find_programs() is None, reason="NOT RUN: there is no Citus, see tests/citus/build"),
]
SUITES = {
    "distributed database": ("tests/citus/test_distributed.py",),
    "isolation of pages": ("tests/isolation/test_pages.py",),
    "isolation of operations": ("tests/isolation/test_operations.py",),
}
TIMEOUT_SECONDS = 3_600


@pytest.mark.parametrize("name", SUITES)
def test_on_citus(name):
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "DATABASE_"))
    }
    environment |= {"TEST_DATABASE": "citus"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", *SUITES[name]]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5_000:]
