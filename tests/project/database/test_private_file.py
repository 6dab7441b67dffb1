"""The database file and the folder of an installation are for their owner only."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from project.doctor.checks import FILES_CHECK, check_file_modes
from project.doctor.results import FindingState

pytestmark = pytest.mark.slow

CREATE = (
    "import django; django.setup(); from django.db import connection; "
    "connection.cursor().execute('CREATE TABLE t (i)')"
)


def get_mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_new_sqlite_file_and_its_log_are_private_whatever_the_umask(tmp_path):
    environment = os.environ | {
        "DATABASE_URL": f"sqlite:///{tmp_path}/new.sqlite3",
        "DRAMATIS_VAR": str(tmp_path / "var"),
        "DJANGO_SETTINGS_MODULE": "project.settings",
    }
    code = f"import os; os.umask(0o022); {CREATE}; os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", code], env=environment, check=False)  # ours
    files = {path.name: get_mode(path) for path in tmp_path.glob("new.sqlite3*")}
    assert files["new.sqlite3"] == 0o600
    assert set(files.values()) == {0o600}
    assert get_mode(tmp_path / "var") == 0o700


@pytest.mark.django_db
def test_the_doctor_warns_about_open_folders(settings, tmp_path):
    settings.VAR, settings.DRAMATIS_CHECKPOINT_DIR = tmp_path / "var", tmp_path / "none"
    settings.VAR.mkdir(mode=0o755)
    settings.VAR.chmod(0o755)
    findings = [one for one in check_file_modes() if str(settings.VAR) in one.message]
    assert [(one.name, one.state) for one in findings] == [(FILES_CHECK, FindingState.WARN)]
    assert "0700" in findings[0].advice
    settings.VAR.chmod(0o700)
    assert not [one for one in check_file_modes() if str(settings.VAR) in one.message]
