"""A folder with too many files: others are read, known files stay, and run, page and API name the folder."""

# ruff: noqa: F811  # fixtures are imported and requested by name

from itertools import pairwise

import pytest
from django.test.utils import override_settings

from skills.discovery import discover_tree, file_limits, results
from skills.discovery.file_limits import select_files
from skills.discovery.harnesses import DiscoveryCaps, FileKind
from skills.models import ContextFile, Source
from tests.factories import make_source, refreshed
from tests.personas.api.skills_stage import (  # noqa: F401  # fixtures
    key_for,
    make_pushed,
    push_and_refresh,
)
from tests.shared_cast import (  # noqa: F401  # fixtures
    shared_alice,
    shared_as_alice,
    shared_bob,
    shared_cast,
    shared_workspace,
)
from tests.skills.files.file_samples import GOOD, file_at, write

pytestmark = pytest.mark.django_db
CAPS = DiscoveryCaps()
RULES = "many/.claude/rules"


@pytest.fixture
def root(tmp_path):
    with override_settings(DRAMATIS_SOURCE_ROOTS=[tmp_path]):
        yield tmp_path


@pytest.fixture
def source(workspace, root) -> Source:
    """A source with a file of its crowded folder and files of other folders, all known."""
    for path in ("AGENTS.md", f"{RULES}/zebra.md", "odd/CLAUDE.md", "walk/AGENTS.md"):
        write(root / path, GOOD)
    source = make_source(workspace, root)
    refreshed(source)
    return source


def crowd(root, count: int, folder: str = RULES) -> None:
    (root / folder).mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (root / folder / f"rule-{number:04}.md").write_text(GOOD)


def statuses(source: Source) -> dict[str, str]:
    rows = ContextFile.objects.in_workspace(source.workspace_id).filter(source=source)
    return dict(rows.values_list("path", "status"))


def limit_tree(caps: DiscoveryCaps):
    return lambda *args, **options: discover_tree(*args, **options, caps=caps)


@pytest.fixture
def low_limit(monkeypatch) -> DiscoveryCaps:
    caps = DiscoveryCaps(folder_files=10, files=20)
    monkeypatch.setattr("skills.refresh.services.discover_tree", limit_tree(caps))
    return caps


@pytest.mark.parametrize("size", ["low", pytest.param("real", marks=pytest.mark.hard)])
def test_a_crowded_folder_does_not_starve_the_others(source, root, as_alice, request, size):
    """Fault 5 of the review of use, with a low limit and as it was reported."""
    caps = request.getfixturevalue("low_limit") if size == "low" else DiscoveryCaps()
    crowd(root, caps.files)
    write(root / "walk/AGENTS.md", "Changed in the meantime.\n")
    write(root / "zoo/AGENTS.md", GOOD)
    run = refreshed(source)
    files = statuses(source)
    assert (run.status, run.seen, len(files)) == ("done", caps.files + 5, caps.folder_files + 4)
    assert {"AGENTS.md", f"{RULES}/zebra.md", "odd/CLAUDE.md", "walk/AGENTS.md", "zoo/AGENTS.md"} <= set(
        files
    )
    assert not {"missing", "invalid"} & set(files.values())
    assert file_at(source, "walk/AGENTS.md").active.content.text == "Changed in the meantime.\n"
    page = as_alice.get(f"/w/{source.workspace.slug}/sources/{source.slug}/").content.decode()
    for text in (run.error, page):
        assert RULES in text
        assert f"{caps.files + 1:,} files" in text
        assert f"{caps.files + 1 - caps.folder_files:,} were skipped" in text


def test_the_api_names_the_folder(source, root, low_limit, alice, key_for):
    crowd(root, 20)
    run = refreshed(source)
    detail = key_for(source.workspace, alice).get(f"sources/{source.slug}/runs/{run.pk}").json()
    assert (detail["cut_folders"], f"{RULES}: The folder has 21 files" in detail["error"]) == ([RULES], True)
    assert [refusal["rule"] for refusal in detail["refusals"]] == ["folder-files"]


def test_files_of_the_folder_that_are_removed_are_missing_and_the_run_recovers(source, root, low_limit):
    crowd(root, 9)
    assert refreshed(source).error == ""
    (root / RULES / "zebra.md").unlink()
    (root / "odd/CLAUDE.md").unlink()
    crowd(root, 11)
    run = refreshed(source)
    missing = {path for path, status in statuses(source).items() if status == "missing"}
    assert missing == {f"{RULES}/zebra.md", "odd/CLAUDE.md"}
    assert "1 were skipped" in run.error
    (root / RULES / "rule-0000.md").unlink()
    run = refreshed(source)
    assert (run.status, run.error) == ("done", "")


def test_known_files_beyond_the_limit_keep_their_last_good_revision(source, root, monkeypatch):
    names = [f"rule-{number:04}.md" for number in range(30)]
    crowd(root, len(names))
    refreshed(source)
    low = DiscoveryCaps(folder_files=10)
    monkeypatch.setattr("skills.refresh.services.discover_tree", limit_tree(low))
    for name in names:
        write(root / RULES / name, "A later text.\n")
    for _again in range(2):
        run = refreshed(source)
        assert (run.status, "31 files" in run.error) == ("done", True)
        files = {name: file_at(source, f"{RULES}/{name}") for name in names}
        texts = [file.active.content.text for file in files.values()]
        assert texts == ["A later text.\n"] * 10 + [GOOD] * 20
        assert all("at most 10" in files[name].problem for name in names[10:])
        assert "missing" not in statuses(source).values()
    monkeypatch.undo()
    with override_settings(DRAMATIS_SOURCE_ROOTS=[root]):
        refreshed(source)
    assert {file_at(source, f"{RULES}/{name}").active.content.text for name in names} == {"A later text.\n"}
    assert not any(file_at(source, f"{RULES}/{name}").problem for name in names)


def test_the_total_limit_is_shared_and_nothing_known_is_missing(source, root, monkeypatch):
    for folder in ("a", "b", "c"):
        crowd(root, 30, f"{folder}/.claude/rules")
    monkeypatch.setattr("skills.refresh.services.discover_tree", limit_tree(DiscoveryCaps(files=34)))
    (root / "odd/CLAUDE.md").unlink()
    run = refreshed(source)
    files = statuses(source)
    shares = [sum(path.startswith(f"{folder}/") for path in files) for folder in "abc"]
    assert (run.status, shares) == ("failed", [11, 10, 10])
    assert "There are 93 files, and at most 34 are read." in run.error
    assert "20 in b/.claude/rules" in run.error
    assert {"AGENTS.md", "walk/AGENTS.md", f"{RULES}/zebra.md"} <= set(files)
    assert "missing" not in files.values()


def test_pushed_files_have_the_same_limit(workspace, monkeypatch):
    source = make_pushed(workspace)
    low = DiscoveryCaps(folder_files=10)
    monkeypatch.setattr(DiscoveryCaps, "lowest_with", lambda self, other: low)
    push_and_refresh(source, {f"a/.claude/rules/{number}.md": GOOD for number in range(20, 40)})
    push_and_refresh(source, {"b/AGENTS.md": GOOD})
    assert len(statuses(source)) == 11
    assert "b/AGENTS.md" in statuses(source)


# --- shares --------------------------------------------------------------------------------------------


def test_equal_shares_leave_what_one_folder_does_not_need_to_the_others():
    found: dict[str, FileKind] = {f"a/{number}/AGENTS.md": "context" for number in range(3_000)}
    found |= {f"b/{number}/AGENTS.md": "context" for number in range(3_000)}
    found |= {"AGENTS.md": "context", "c/AGENTS.md": "context"}
    selection = select_files(found, (), CAPS)
    shares = {name: sum(path.startswith(f"{name}/") for path in selection.chosen) for name in "abc"}
    assert (len(selection.chosen), shares) == (CAPS.files, {"a": 999, "b": 999, "c": 1})
    assert len(selection.skipped) == len(found) - CAPS.files


def test_no_folder_gets_less_than_a_larger_one_and_the_limit_is_used_up():
    for most in range(1, 40, 3):
        sizes = {"a": 1, "b": 4, "c": 9, "d": 30}
        found: dict[str, FileKind] = {
            f"{name}/.claude/rules/{at}.md": "context" for name, size in sizes.items() for at in range(size)
        }
        selection = select_files(found, (), DiscoveryCaps(files=most))
        shares = [sum(path.startswith(f"{name}/") for path in selection.chosen) for name in sizes]
        assert sum(shares) == most
        for (small, size), (large, _) in pairwise(zip(shares, sizes.values(), strict=True)):
            assert small == size or small >= large - 1


# --- planted faults ------------------------------------------------------------------------------------


@pytest.mark.planted
def test_shares_by_name_are_detected(monkeypatch):
    monkeypatch.setattr(file_limits.FolderNode, "choose", lambda self, most: sorted(self.list_all())[:most])
    with pytest.raises(AssertionError):
        test_equal_shares_leave_what_one_folder_does_not_need_to_the_others()


@pytest.mark.planted
def test_skipped_files_that_become_missing_are_detected(source, root, monkeypatch):
    real = results.DiscoveryResult.list_missing_paths

    def list_missing_paths(self, known_paths):
        object.__setattr__(self, "skipped", ())
        return real(self, known_paths)

    monkeypatch.setattr(results.DiscoveryResult, "list_missing_paths", list_missing_paths)
    with pytest.raises(AssertionError):
        test_known_files_beyond_the_limit_keep_their_last_good_revision(source, root, monkeypatch)
