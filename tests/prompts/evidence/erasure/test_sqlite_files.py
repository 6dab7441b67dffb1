"""Erasure in SQLite: the text is in no file of the database when the erasure returns."""

import json
import os
import subprocess
import sys

import pytest

from tests.project.backup.backup_stage import ROOT
from tests.promises.installation import migrated_database


@pytest.mark.slow
def test_erased_text_is_in_no_file_of_the_database(tmp_path):
    command = [sys.executable, "-m", "tests.prompts.evidence.erasure.erase_in_sqlite"]
    with migrated_database(tmp_path, "sqlite") as url:
        variables = {**os.environ, "DATABASE_URL": url, "DRAMATIS_VAR": str(tmp_path / "var")}
        done = subprocess.run(
            command, env=variables, capture_output=True, text=True, check=False, timeout=300, cwd=ROOT
        )
    assert done.returncode == 0, done.stderr[-3_000:]
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["before"], "the text was in no file before, so the test proves nothing"
    assert result["after"] == []
