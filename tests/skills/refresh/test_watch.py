"""Which folders are watched, and a real watcher on real folders."""

import os
import time
from pathlib import Path

import pytest
from django.conf import settings as project

from personas.records.services import edit_record
from skills.models import RefreshRun, Source
from skills.refresh import watch
from skills.refresh.watch import build_watch_plan, is_path_below
from tests.factories import BY, make_source
from tests.skills.job_stage import get_active_text, is_at_rest, job_stage, sweep
from tests.workers import wait_for

SECONDS = 60


@pytest.fixture
def folder(tmp_path: Path, settings) -> Path:
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "AGENTS.md").write_text("Be kind.\n")
    return folder


@pytest.fixture
def source(workspace, folder) -> Source:
    return make_source(workspace, folder, refresh_minutes=None)


def below(source: Source, folder: str) -> Source:
    return edit_record(source, {"folder": folder}, expected=source.revision, by=BY)


# --- watched folders ---------------------------------------------------------------------------------------


def watched(folder: Path) -> set[str]:
    """List the watched folders as paths below this one."""
    return {os.path.relpath(path, folder) for path in build_watch_plan().list_folders()}


@pytest.mark.django_db
def test_folders_are_watched_but_no_links_and_none_that_rules_pass_over(source, folder, tmp_path):
    (tmp_path / "outside" / "deep").mkdir(parents=True)
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "node_modules" / "x").mkdir(parents=True)
    (folder / ".git" / "objects").mkdir(parents=True)
    (folder / "out").symlink_to(tmp_path / "outside")
    (folder / "loop").symlink_to(folder)
    assert watched(folder) == {".", "a", "a/b"}


@pytest.mark.django_db
def test_no_more_is_watched_than_may_be(source, folder, monkeypatch):
    monkeypatch.setattr(watch, "MAX_WATCHED_FOLDERS", 5)
    for number in range(9):
        (folder / str(number) / "deep").mkdir(parents=True)
    folders = watched(folder)
    assert len(folders) == 5
    assert "." in folders
    assert not any("deep" in name for name in folders)


@pytest.mark.django_db
def test_only_the_chosen_folder_is_watched_and_no_way_out_of_the_grant(workspace, folder):
    (folder / "chosen").mkdir()
    (folder / "other").mkdir()
    source = below(make_source(workspace, folder), "chosen")
    assert watched(folder) == {"chosen"}
    # The form refuses such a folder, but the watcher must not rely on it.
    Source.unscoped.filter(pk=source.pk).update(folder="chosen/../other")
    assert watched(folder) == set()
    (folder / "link").symlink_to(folder / "other")
    Source.unscoped.filter(pk=source.pk).update(folder="link")
    assert watched(folder) == set()


@pytest.mark.django_db
def test_nothing_is_watched_that_operators_no_longer_allow(source, folder, settings, tmp_path):
    assert watched(folder) == {"."}
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path / "elsewhere"]
    assert build_watch_plan().list_folders() == []


@pytest.mark.django_db
def test_only_changes_that_affect_a_refresh_count(source, folder):
    (folder / "notes").mkdir()
    (folder / ".agents" / "skills" / "tea").mkdir(parents=True)
    (folder / "words.md").write_text("Words.\n")
    (folder / "notes" / "AGENTS.md").symlink_to(folder / "words.md")
    plan = build_watch_plan()

    def counts(path: str, what: watch.ChangeKind = "modified") -> bool:
        return bool(plan.find_changed_sources([(what, str(folder / path))]))

    assert counts("AGENTS.md")
    assert counts("AGENTS.md", "deleted")
    assert counts("notes/AGENTS.md", "added")
    assert counts(".agents/skills/tea/SKILL.md", "added")
    assert counts("words.md"), "a link with a wanted name leads there"
    assert counts("notes", "deleted"), "a folder that went"
    assert not counts("main.c")
    assert not counts("gone.txt", "deleted")
    assert not counts("notes/.AGENTS.md.swp", "added")
    (folder / "fresh").mkdir()
    assert counts("fresh", "added")
    (folder / "node_modules").mkdir()
    assert not counts("node_modules", "added")


@pytest.mark.django_db
def test_a_change_affects_only_the_sources_that_contain_it(source, workspace, elsewhere, folder, tmp_path):
    (folder / "sub").mkdir()
    inner = below(make_source(elsewhere, folder, "Theirs"), "sub")
    (tmp_path / "far").mkdir()
    make_source(workspace, tmp_path / "far", "Far")
    plan = build_watch_plan()
    assert plan.find_changed_sources([("modified", str(folder / "sub" / "AGENTS.md"))]) == {
        source.pk,
        inner.pk,
    }
    assert plan.find_changed_sources([("modified", str(folder / "AGENTS.md"))]) == {source.pk}


def test_a_path_is_below_itself_and_its_folders():
    assert is_path_below("/a/b", "/a/b")
    assert is_path_below("/a/b/c", "/a/b")
    assert not is_path_below("/a/bc", "/a/b")


# --- a real watcher ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stage(django_db_setup, tmp_path_factory):
    with job_stage(tmp_path_factory.mktemp("watch"), tmp_path_factory.getbasetemp()) as stage:
        stage.worker()
        stage.watcher()
        yield stage
        assert [process.process.poll() for process in stage.processes] == [None, None], stage.log()


live = [pytest.mark.redis, pytest.mark.django_db(transaction=True)]


def is_watched(source: Source) -> bool:
    """Return whether the source is watched: the watcher requests a refresh when it discovers a source."""
    return bool(wait_for(lambda: is_at_rest(source), SECONDS))


def shows_up(source: Source, text: str, path: str = "AGENTS.md") -> bool:
    return bool(wait_for(lambda: get_active_text(source, path) == text, SECONDS))


def runs_asked() -> int:
    return RefreshRun.unscoped.count()


@pytest.mark.slow
class TestWatcher:
    """All tests share one watcher and one worker."""

    pytestmark = live

    def test_saved_text_is_stored_however_it_is_saved(self, stage, source, folder):
        assert is_watched(source), stage.log()
        (folder / "AGENTS.md").write_text("Be very kind.\n")
        assert shows_up(source, "Be very kind.\n"), stage.log()
        assert set(RefreshRun.unscoped.values_list("cause", "actor_label")) == {("watch", "dramatis")}
        (folder / ".AGENTS.md.tmp").write_text("Renamed.\n")
        (folder / ".AGENTS.md.tmp").rename(folder / "AGENTS.md")
        assert shows_up(source, "Renamed.\n"), f"put in place as editors do: {stage.log()}"
        (folder / "a" / "b").mkdir(parents=True)
        (folder / "a" / "b" / "AGENTS.md").write_text("Below.\n")
        assert shows_up(source, "Below.\n", "a/b/AGENTS.md"), f"in a new folder: {stage.log()}"
        (folder / "a" / "b" / "AGENTS.md").write_text("Far below.\n")
        assert shows_up(source, "Far below.\n", "a/b/AGENTS.md"), f"a new folder is watched: {stage.log()}"

    def test_a_folder_that_goes_and_comes_back_is_found_again(self, stage, source, folder):
        assert is_watched(source), stage.log()
        folder.rename(folder.with_name("away"))
        assert wait_for(lambda: RefreshRun.unscoped.filter(status="failed").exists(), SECONDS), stage.log()
        folder.mkdir()
        (folder / "AGENTS.md").write_text("Back.\n")
        assert shows_up(source, "Back.\n"), stage.log()

    # The tests above show that such changes are ignored; here it would only be a long wait.
    @pytest.mark.hard
    def test_changes_that_do_not_affect_a_refresh_request_none(self, stage, source, folder):
        (folder / "node_modules").mkdir()
        assert is_watched(source), stage.log()
        before = runs_asked()
        (folder / "node_modules" / "AGENTS.md").write_text("Not mine.\n")
        (folder / "main.c").write_text("int main;\n")
        time.sleep(1.5)
        assert runs_asked() == before

    @pytest.mark.hard
    def test_a_broken_broker_costs_a_message_and_no_more(self, stage, source, folder):
        assert is_watched(source), stage.log()
        before = runs_asked()
        stage.freeze()
        try:
            (folder / "AGENTS.md").write_text("Later.\n")
            assert wait_for(lambda: runs_asked() > before, SECONDS), stage.log()
        finally:
            stage.thaw()
        (folder / "AGENTS.md").write_text("Latest.\n")

        def exists() -> bool:
            sweep()
            return get_active_text(source) == "Latest.\n"

        assert wait_for(exists, 3 * SECONDS), stage.log()


def test_the_watcher_is_part_of_development_only():
    from project.supervisor import children

    class Started(dict):
        def start(self, name, command, env):
            self[name] = [str(word) for word in command]

    before = project.PRODUCTION
    try:
        project.PRODUCTION = False
        children.start_workers(started := Started(), {})  # type: ignore[arg-type]
        assert started["watcher"][-2:] == [str(project.BASE_DIR / "manage.py"), "watch_sources"]
        project.PRODUCTION = True
        children.start_workers(started := Started(), {})  # type: ignore[arg-type]
        assert set(started) == {"beat", "webhooks", "worker"}
    finally:
        project.PRODUCTION = before
