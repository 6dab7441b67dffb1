"""Run existing tests on a database that is distributed over a Citus cluster (TEST_DATABASE=citus).

They run in processes of their own, because the database of a test run is chosen at its start. One suite:

    python3 dev.py test --hard tests/citus -k "R9 and long"
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
WRITERS = "tests/prompts/publishing/versions/test_numbering.py"
FAILED_WRITES = "tests/isolation/test_failed_writes.py"
CHANGED_ROWS = "tests/prompts/evidence/integrity/test_verify.py"
MANY_FLIPS = "test_thousands_of_bytes_flipped_in_the_database_are_found[5000]"
# The arguments of pytest, by name.
SUITES: dict[str, tuple[str, ...]] = {
    "distributed database": ("tests/citus/test_distributed.py",),
    "row-level security": ("tests/citus/test_restricted_role.py",),
    "preconditions of distribute": ("tests/citus/test_preconditions.py",),
    "isolation of pages": ("tests/isolation/test_pages.py",),
    "isolation of operations": ("tests/isolation/test_operations.py",),
    "isolation of key scopes": ("tests/isolation/test_key_scopes.py",),
    "planted page faults": ("tests/isolation/test_planted_page_faults.py",),
    "planted operation faults": ("tests/isolation/test_planted_operation_faults.py",),
    "filters": (*("tests/personas", "tests/prompts", "tests/skills", "tests/isolation"), "-k", "filter"),
    "R3 writers": (WRITERS, "-k", "writers or collide"),
    "R3 edits": ("tests/promises/test_many_edits.py",),
    "R4 workers": ("tests/promises/test_killed_workers.py",),
    "R4 servers": ("tests/promises/test_killed_servers.py", "-k", "not sqlite"),
    # 248 changed bytes in the database, and 5,800 in memory: each one in the database is a verification.
    "R9 changed rows": (CHANGED_ROWS, "--deselect", f"{CHANGED_ROWS}::{MANY_FLIPS}"),
    "R9 long record": ("tests/promises/test_long_record.py",),
    "R11 revocation": ("tests/personas/api/test_revocation.py",),
    "R14 statements": (WRITERS, "-k", "not writers and not collide"),
    "R14 operations": (FAILED_WRITES, "-k", "operations or part"),
    "R14 pages": (FAILED_WRITES, "-k", "pages"),
    "erasure": (
        "tests/prompts/evidence/erasure/test_erasure.py",
        "tests/prompts/evidence/erasure/test_reviewed_agents.py",
    ),
    "scan by a worker": ("tests/skills/refresh/test_workers.py", "-k", "not frozen and not broker"),
    "scheduled jobs": ("tests/citus/test_scheduled_jobs.py",),
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
    # The last lines have the counts and what was measured.
    print(done.stdout[-2_000:])
    assert done.returncode == 0, done.stdout[-5_000:]


def test_every_suite_names_files_that_exist():
    names = [argument for arguments in SUITES.values() for argument in arguments if argument.endswith(".py")]
    assert [name for name in names if not (ROOT / name).exists()] == []
