"""Two workspaces with adjacent folders: a trace shows that no refresh of one opens a file of the other."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from personas.models import Content
from skills.models import ContextFile, RefreshRun, Source
from skills.refresh.runs import request_refresh
from tests.factories import BY, make_source
from tests.project.deployment.production_settings import ROOT
from tests.workers import url_of_test_database

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc to learn where a descriptor leads"),
]

SECRET = "Mallory's own words.\n"

# One process for all jobs, because an audit hook cannot be removed. The hook gets no dir_fd, so the wrapper
# of os.open records the path of each descriptor; the hook records the rest.
TRACER = """
import json, os, sys
from pathlib import Path
os.environ["DJANGO_SETTINGS_MODULE"] = "project.settings"
import django
django.setup()
from django.conf import settings
from django.db import connection
from skills.discovery import filesystem
from skills.refresh import services as refreshing
from skills.refresh.runs import claim_run

opened, real_open = [], os.open

def noting_open(path, flags, mode=0o777, *, dir_fd=None):
    fd = real_open(path, flags, mode, dir_fd=dir_fd)
    opened.append(os.readlink(f"/proc/self/fd/{fd}"))
    return fd

def hook(event, given):
    if event in {"open", "os.scandir", "os.listdir"} and str(given[0]).startswith("/"):
        opened.append(os.path.realpath(str(given[0])))

def careless_root(self, granted, folder="", *, allow_hard_links=False):
    self.allow_hard_links = allow_hard_links
    self.path = os.path.join(granted, folder)
    self.fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
    self.device = os.fstat(self.fd).st_dev

FAULTS = {
    "": (settings, "PRODUCTION", settings.PRODUCTION),
    "allowed always": (refreshing, "is_folder_allowed", lambda path: True),
    "through links": (filesystem, "FOLDER_OPEN_FLAGS", filesystem.FOLDER_OPEN_FLAGS & ~os.O_NOFOLLOW),
    "upwards": (filesystem.SafeRoot, "__init__", careless_root),
}

def traced(workspace_id, run_id):
    opened.clear()
    refreshing.refresh_source(claim_run(workspace_id, run_id))
    return list(opened)

os.open = noting_open
sys.addaudithook(hook)
for line in sys.stdin:
    job = json.loads(line)
    settings.DRAMATIS_SOURCE_ROOTS = [Path(job["roots"])]
    place, name, broken = FAULTS[job["fault"]]
    sound = getattr(place, name)
    setattr(place, name, broken)
    told = [traced(*run) for run in job["runs"]]
    setattr(place, name, sound)
    connection.close()
    print(json.dumps(told), flush=True)
"""


@pytest.fixture(scope="module")
def tracer(django_db_setup):
    process = subprocess.Popen(
        [sys.executable, "-c", TRACER],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": url_of_test_database()},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    yield process
    process.communicate(timeout=120)


@dataclass
class Neighbours:
    """A folder of Alice and one of Mallory with the same parent."""

    top: Path
    tracer: "subprocess.Popen[str]"

    @property
    def ours(self) -> Path:
        return self.top / "alice"

    @property
    def theirs(self) -> Path:
        return self.top / "mallory"

    def opened(self, *sources: Source, roots: Path | None = None, fault: str = "") -> list[list[str]]:
        """Refresh each source in the traced process and return the opened paths below `top`."""
        runs = [request_refresh(source, cause="person", by=BY) for source in sources]
        job = {"runs": [(run.workspace_id, run.pk) for run in runs], "roots": str(roots or self.top)}
        assert self.tracer.stdin
        assert self.tracer.stdout
        self.tracer.stdin.write(json.dumps(job | {"fault": fault}) + "\n")
        self.tracer.stdin.flush()
        traces = json.loads(self.tracer.stdout.readline())
        return [[path for path in paths if Path(path).is_relative_to(self.top)] for paths in traces]


@pytest.fixture
def neighbours(tmp_path, settings, tracer) -> Neighbours:
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    both = Neighbours(tmp_path, tracer)
    for folder, text in ((both.ours, "Alice's words.\n"), (both.theirs, SECRET)):
        skill = folder / ".agents" / "skills" / "tea"
        skill.mkdir(parents=True)
        (folder / "AGENTS.md").write_text(text)
        (skill / "SKILL.md").write_text(f"---\nname: tea\ndescription: {text.strip()}\n---\n")
    return both


@pytest.fixture
def ours(neighbours, workspace) -> Source:
    return make_source(workspace, neighbours.ours)


@pytest.fixture
def theirs(neighbours, elsewhere) -> Source:
    return make_source(elsewhere, neighbours.theirs)


def below(folder: Path, paths: list[str]) -> list[str]:
    return [path for path in paths if Path(path).is_relative_to(folder)]


def strangers_words(source: Source) -> list[str]:
    rows = Content.objects.in_workspace(source.workspace_id)
    return [row.text for row in rows if SECRET.strip() in row.text]


@pytest.mark.slow
def test_each_refresh_stays_in_its_own_folder(neighbours, ours, theirs):
    mine, yours = neighbours.opened(ours, theirs)
    assert below(neighbours.ours, mine) == mine
    assert below(neighbours.theirs, yours) == yours
    assert str(neighbours.ours / "AGENTS.md") in mine
    assert str(neighbours.theirs / "AGENTS.md") in yours
    assert not strangers_words(ours)
    assert len(strangers_words(theirs)) == 2


@pytest.mark.slow
def test_links_to_a_neighbour_are_refused_unread(neighbours, ours):
    lay_links(neighbours)
    [mine] = neighbours.opened(ours)
    assert below(neighbours.ours, mine) == mine
    assert not strangers_words(ours)
    run = RefreshRun.unscoped.get()
    refused = {refusal["path"]: refusal["rule"] for refusal in run.refusals}
    assert refused == {
        "absolute/AGENTS.md": "link-out",
        "relative/AGENTS.md": "link-out",
        "climbing/AGENTS.md": "link-out",
        "whole/.agents": "link-out",
        "skills/.agents/skills/tea": "link-out",
    }
    assert set(ContextFile.unscoped.values_list("path", flat=True)) == {
        "AGENTS.md",
        ".agents/skills/tea/SKILL.md",
    }


def lay_links(neighbours: Neighbours) -> None:
    theirs = neighbours.theirs
    targets = {
        "absolute/AGENTS.md": str(theirs / "AGENTS.md"),
        "relative/AGENTS.md": "../../mallory/AGENTS.md",
        "climbing/AGENTS.md": "../.agents/../../mallory/AGENTS.md",
        "whole/.agents": str(theirs / ".agents"),
        "skills/.agents/skills/tea": "../../../../mallory/.agents/skills/tea",
    }
    for name, target in targets.items():
        link = neighbours.ours / name
        link.parent.mkdir(parents=True)
        link.symlink_to(target)


CROOKED = ["../mallory", "sub/../../mallory", "/mallory", "link", "sub/link", "./../mallory", "..", "sub/.."]


def crooked(neighbours: Neighbours, source: Source, folder: str) -> None:
    """Store a folder that the form refuses; SafeRoot must not rely on the form."""
    Source.unscoped.filter(pk=source.pk).update(folder=folder)
    (neighbours.ours / "sub").mkdir(exist_ok=True)
    for link in (neighbours.ours / "link", neighbours.ours / "sub" / "link"):
        if not link.is_symlink():
            link.symlink_to(neighbours.theirs)


@pytest.mark.slow
def test_no_spelling_of_a_sources_folder_leads_to_a_neighbour(neighbours, workspace):
    sources = [make_source(workspace, neighbours.ours, f"Way {number}") for number in range(len(CROOKED))]
    for source, folder in zip(sources, CROOKED, strict=True):
        crooked(neighbours, source, folder)
    for folder, mine in zip(CROOKED, neighbours.opened(*sources), strict=True):
        assert below(neighbours.ours, mine) == mine, folder
    assert not strangers_words(sources[0])
    assert not ContextFile.unscoped.exists()
    assert set(RefreshRun.unscoped.values_list("status", flat=True)) == {"failed"}


def test_a_withdrawn_root_is_not_even_listed(neighbours, ours):
    assert neighbours.opened(ours, roots=neighbours.top / "elsewhere") == [[]]
    assert RefreshRun.unscoped.get().status == "failed"


def test_a_root_that_only_begins_like_the_grant_allows_nothing(neighbours, ours):
    (neighbours.top / "ali").mkdir()
    assert neighbours.opened(ours, roots=neighbours.top / "ali") == [[]]


# --- with disabled checks --------------------------------------------------------------------------------


@pytest.mark.planted
def test_a_root_that_is_read_after_its_withdrawal_is_noticed(neighbours, ours):
    [mine] = neighbours.opened(ours, roots=neighbours.top / "elsewhere", fault="allowed always")
    assert mine


@pytest.mark.planted
@pytest.mark.parametrize(("folder", "fault"), [("link", "through links"), ("../mallory", "upwards")])
def test_a_way_to_a_neighbour_is_noticed(neighbours, ours, folder, fault):
    crooked(neighbours, ours, folder)
    [mine] = neighbours.opened(ours, fault=fault)
    assert below(neighbours.theirs, mine)
    assert strangers_words(ours)
