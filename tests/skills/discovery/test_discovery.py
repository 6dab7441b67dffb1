"""Discovery on a hundred unusual trees: nothing outside is opened, and no valid file is lost."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.skills.discovery import discovery_limits, discovery_links, discovery_places
from tests.skills.discovery.discovery_stage import Case, Stage, findings

pytestmark = pytest.mark.slow

CASES: list[Case] = [
    *(*discovery_links.LINKS, *discovery_links.KINDS, *discovery_limits.SIZES, *discovery_limits.NAMES),
    *(*discovery_limits.NUMBERS, *discovery_limits.PERMISSIONS, *discovery_places.WORKING_DIRECTORIES),
    *(*discovery_places.FOLDERS, *discovery_places.RACES),
]
RUNS = [pytest.param(case, way, id=f"{case.name} ({way})") for case in CASES for way in case.ways]


@pytest.fixture
def stage():
    """A stage outside pytest's temporary folder, which only root may enter."""
    top = Path(os.path.realpath(tempfile.mkdtemp(prefix="dramatis-")))
    top.chmod(0o755)
    yield Stage(top)
    if os.getuid():
        subprocess.run(["chmod", "-R", "u+rwX", top], check=True)
    shutil.rmtree(top)


def test_the_corpus_is_large():
    assert len(CASES) >= 100
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.promise("R8", counts="files")
@pytest.mark.parametrize(("case", "way"), RUNS)
def test_an_odd_thing_is_refused_for_its_reason_and_harms_no_other(case, way, stage):
    assert findings(case, way, stage) == []
