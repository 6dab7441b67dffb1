"""A second search reads only changed files, and an audit hook shows that nothing outside is opened."""

import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from skills.discovery import discover_files, discover_tree
from skills.discovery.filesystem import FileStamp
from skills.discovery.harnesses import HARNESSES, OPAL, DiscoveryCaps
from skills.discovery.lookup import join_path
from tests.skills.discovery.discovery_stage import SECRET, Stage

ROOT = Path(__file__).resolve().parents[3]
WAYS = pytest.mark.parametrize("way", ["up", "tree"])


@pytest.fixture
def stage(tmp_path):
    stage = Stage(tmp_path)
    stage.write("AGENTS.md", ".agents/skills/x/SKILL.md")
    stage.link(".opal/AGENTS.md", "../AGENTS.md")
    return stage


def every(result):
    return (*result.files, *result.skills)


def stamps(result) -> dict[str, FileStamp]:
    return {file.path: file.stamp for file in every(result)}


@WAYS
def test_files_of_an_unchanged_source_are_not_read_again(stage, way):
    first = getattr(stage, way)()
    assert (first.seen_count, first.read_count) == (4, 4)
    stage.opened.clear()
    again = getattr(stage, way)(known_stamps=stamps(first))
    assert (again.seen_count, again.read_count) == (4, 0)
    assert stamps(again) == stamps(first)
    assert all(file.content is None for file in every(again))
    assert not [path for path in stage.opened if Path(path).is_file()]


@WAYS
@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_text("other words"),
        lambda path: os.utime(path, ns=(1, 1)),
        lambda path: os.replace(shutil.copy2(path, f"{path}.new"), path),
    ],
    ids=["size", "time", "inode"],
)
def test_one_changed_file_is_the_one_that_is_read(stage, way, change):
    known_stamps = stamps(getattr(stage, way)())
    change(stage.inside / "OPAL.md")
    result = getattr(stage, way)(known_stamps=known_stamps)
    assert [file.path for file in every(result) if file.content is not None] == ["OPAL.md"]
    assert result.read_count == 1


@WAYS
def test_a_changed_target_is_read_through_its_link(stage, way):
    known_stamps = stamps(getattr(stage, way)())
    stage.write("AGENTS.md", text="new words")
    result = {file.path: file for file in every(getattr(stage, way)(known_stamps=known_stamps))}
    assert result[".opal/AGENTS.md"].content == b"new words"
    assert result[".opal/AGENTS.md"].target == "AGENTS.md"
    assert result["AGENTS.md"].target == ""


@WAYS
def test_a_file_comes_with_its_bytes_and_their_digest(stage, way):
    stage.write("AGENTS.md", text=b"\xef\xbb\xbfwords\r\n")
    file = getattr(stage, way)().files[0]
    assert file.content == b"\xef\xbb\xbfwords\r\n"
    assert file.stamp.digest == hashlib.sha256(file.content).hexdigest()
    status = (stage.inside / "AGENTS.md").stat()
    assert file.stamp[:4] == (10, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


@WAYS
def test_a_known_file_that_became_bad_is_refused_not_recalled(stage, way):
    known_stamps = stamps(getattr(stage, way)())
    (stage.inside / "OPAL.md").unlink()
    stage.link("OPAL.md", stage.outside / "secret.md")
    result = getattr(stage, way)(known_stamps=known_stamps)
    assert [(refusal.path, refusal.rule) for refusal in result.refusals] == [("OPAL.md", "link-out")]
    assert "OPAL.md" not in stamps(result)


@WAYS
def test_gone_is_what_surely_is_no_more(stage, way):
    known_stamps = stamps(getattr(stage, way)())
    (stage.inside / "AGENTS.md").unlink()
    shutil.rmtree(stage.inside / ".agents")
    result = getattr(stage, way)(known_stamps=known_stamps)
    # The link to it is dangling, which is a refusal and not a missing file.
    assert result.list_missing_paths(known_stamps) == [".agents/skills/x/SKILL.md", "AGENTS.md"]


@WAYS
def test_what_a_refusal_hides_is_not_gone(stage, way):
    known_stamps = stamps(getattr(stage, way)())
    shutil.rmtree(stage.inside / ".agents")
    stage.link(".agents", stage.outside)
    assert getattr(stage, way)(known_stamps=known_stamps).list_missing_paths(known_stamps) == []


@WAYS
def test_nothing_is_gone_when_the_search_ended_early(stage, way):
    known_stamps = stamps(getattr(stage, way)())
    result = getattr(stage, way)(known_stamps=known_stamps, caps=DiscoveryCaps(files=1))
    assert not result.is_complete
    assert result.list_missing_paths(known_stamps) == []


@pytest.mark.parametrize("folder", ["", "crowd"])
def test_nothing_is_gone_below_a_folder_that_was_cut(stage, folder):
    names = [join_path(folder, f"{at}/AGENTS.md") for at in range(30)]
    stage.write(*names)
    known_stamps = stamps(stage.tree())
    shutil.rmtree(stage.inside / folder / "7")
    result = stage.tree(known_stamps=known_stamps, caps=DiscoveryCaps(folder_entries=10))
    assert (result.is_complete, result.cut_folders) == (True, (folder,))
    assert result.list_missing_paths(names) == []


def test_nothing_is_gone_when_the_root_cannot_be_listed(stage, monkeypatch):
    known_stamps = stamps(stage.tree())

    def fail(_fd):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "scandir", fail)
    result = stage.tree(known_stamps=known_stamps)
    assert (result.is_complete, result.list_missing_paths(known_stamps)) == (False, [])
    assert [refusal.rule for refusal in result.refusals] == ["source"]


def test_an_empty_root_is_reported(tmp_path):
    assert discover_tree(tmp_path, [OPAL]).is_empty
    (tmp_path / "README.md").touch()
    assert not discover_tree(tmp_path, [OPAL]).is_empty


def test_nothing_is_gone_when_the_source_is_not_there(tmp_path):
    for result in (discover_files(tmp_path / "none", "", OPAL), discover_tree(tmp_path / "none", [OPAL])):
        assert (result.list_missing_paths(["AGENTS.md"]), [refusal.rule for refusal in result.refusals]) == (
            [],
            ["source"],
        )


@WAYS
def test_the_order_is_that_of_the_names_and_not_of_the_disk(stage, way, tmp_path):
    names = [f"{folder}/{name}" for folder in "cab" for name in ("AGENTS.md", ".agents/skills/y/SKILL.md")]
    stage.write(*names)
    (tmp_path / "two").mkdir()
    other = Stage(tmp_path / "two")
    other.write(*reversed([*names, "AGENTS.md", ".agents/skills/x/SKILL.md"]))
    other.link(".opal/AGENTS.md", "../AGENTS.md")
    assert list(stamps(getattr(stage, way)())) == list(stamps(getattr(other, way)()))


@WAYS
def test_progress_is_reported_after_each_file(stage, way):
    stage.fifo(".agents/AGENTS.md")
    calls: list[tuple[int, ...]] = []
    getattr(stage, way)(on_progress=lambda *counts: calls.append(counts))
    assert len(calls) == 5
    assert calls[-1][0] == 5
    assert [sum(counts[1:]) for counts in calls] == [1, 2, 3, 4, 5]


@WAYS
def test_no_descriptor_stays_open(stage, way):
    before = len(os.listdir("/dev/fd"))
    stage.fifo(".agents/AGENTS.md")
    stage.link(".agents/OPAL.md", stage.outside / "secret.md")
    getattr(stage, way)(caps=DiscoveryCaps(files=3))
    getattr(stage, way)()
    assert len(os.listdir("/dev/fd")) == before


# --- traced ----------------------------------------------------------------------------------------------

TRACER = """
import json, os, sys
sys.path.insert(0, {project!r})
from skills.discovery import discover_files, discover_tree
from skills.discovery.harnesses import HARNESSES

# The hook is not told dir_fd, so the opener notes where each descriptor really leads; the hook proves that
# nothing was opened past it.
opened, events, real_open = [], [], os.open

def noting_open(path, flags, mode=0o777, *, dir_fd=None):
    fd = real_open(path, flags, mode, dir_fd=dir_fd)
    opened.append(os.readlink(f"/proc/self/fd/{{fd}}"))
    return fd

os.open = noting_open
sys.addaudithook(lambda event, given: events.append((event, str(given[0]))) if event in WATCHED else None)
WATCHED = {{"open", "os.scandir", "os.listdir"}}
for harness in HARNESSES.values():
    discover_files({inside!r}, "work/deep", harness)
discover_tree({inside!r}, list(HARNESSES.values()))
WATCHED = set()
print(json.dumps([opened, events]))
"""


def lure(stage: Stage) -> None:
    """Put a link to the outside at every path that a harness reads, next to valid files."""
    for harness in HARNESSES.values():
        for rule in harness.rules:
            for at, path in enumerate(rule.paths):
                name = path.removeprefix("~/").replace("*", "bait")
                for folder in ("", "work", "work/deep"):
                    link = stage.path(f"{folder}/{name}".strip("/"))
                    if not os.path.lexists(link):
                        link.symlink_to(
                            stage.outside / "secret.md" if at % 2 else "../../../../outside/secret.md"
                        )
    stage.link("work/deep/docs", stage.outside)
    stage.link("work/lib", "/etc")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc to learn where a descriptor leads")
def test_an_audit_hook_sees_nothing_opened_outside(tmp_path):
    stage = Stage(tmp_path)
    lure(stage)
    code = TRACER.format(project=str(ROOT), inside=str(stage.inside))
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    opened, events = json.loads(answer.stdout)
    inside = str(stage.inside)
    assert len([event for event, _ in events if event == "open"]) == len(opened) > 50
    assert [path for path in opened if path != inside and not path.startswith(f"{inside}/")] == []
    # Folders are listed by descriptor, and all descriptors were opened inside.
    assert {event for event, path in events if not path.isdigit() and event != "open"} == set()


MOUNTED = """
set -e
mount -t tmpfs none "$1/sub"
echo foreign > "$1/sub/AGENTS.md"
exec "$2" -c "
import sys
sys.path.insert(0, sys.argv[2])
from skills.discovery import discover_tree
from skills.discovery.harnesses import MOLTIS
for refusal in discover_tree(sys.argv[1], [MOLTIS]).refusals:
    print(refusal.path, refusal.rule)
" "$1" "$3"
"""


def test_a_real_mount_is_not_crossed(tmp_path):
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip(
            "This machine lets us mount nothing; the pretended mounts in test_discovery.py still count."
        )
    stage = Stage(tmp_path)
    stage.write("AGENTS.md", "sub/x")
    arguments = [str(stage.inside), sys.executable, str(ROOT)]
    answer = subprocess.run(
        ["unshare", "-m", "sh", "-c", MOUNTED, "sh", *arguments], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.split("\n")[:-1] == ["sub mount"]


def test_the_secret_is_worth_guarding(stage):
    assert (stage.outside / "secret.md").read_bytes() == SECRET
