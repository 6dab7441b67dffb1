"""A refresh stores revisions, statuses and the effective revision."""

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from personas.models import Content
from personas.signals import agent_changed
from skills.agent_context.services import choose_context
from skills.files.services import approve_file, ignore_file, waive_findings
from skills.models import ContextFile, FileRevision, RefreshRun
from tests.factories import BY, make_agent, make_source, refreshed
from tests.shared_cast import (  # noqa: F401  # fixtures
    shared_alice,
    shared_as_alice,
    shared_as_bob,
    shared_as_mallory,
    shared_bob,
    shared_cast,
    shared_elsewhere,
    shared_mallory,
    shared_workspace,
)

pytestmark = pytest.mark.django_db

POISON = "Be kind.\n\u202eevil\n"


@pytest.fixture
def tree(tmp_path: Path, settings) -> Path:
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    (tmp_path / "AGENTS.md").write_text("Be kind.\n")
    skill = tmp_path / ".agents" / "skills" / "tea"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: tea\ndescription: Makes tea.\n---\n\nBoil water.\n")
    return tmp_path


@pytest.fixture
def source(workspace, tree):
    return make_source(workspace, tree)


def file_at(source, path="AGENTS.md") -> Any:
    rows = ContextFile.objects.in_workspace(source.workspace_id).filter(source=source)
    return rows.select_related("latest", "active__content", "approved").get(path=path)


def rewrite(path: Path, text: str) -> None:
    """Rewrite a file so that size or time differ, whatever the resolution of the clock."""
    path.write_text(text)
    os.utime(path, ns=(path.stat().st_mtime_ns + 1_000_000, path.stat().st_mtime_ns + 1_000_000))


def test_a_first_refresh_stores_files_and_their_text(source):
    run = refreshed(source)
    file = file_at(source)
    assert (run.status, run.seen, run.read, run.refused) == ("done", 2, 2, 0)
    assert run.outcome == {"new": 2}
    assert (file.status, file.file_kind, file.active.content.text) == ("new", "context", "Be kind.\n")


def test_a_second_refresh_reads_nothing_and_writes_only_its_run(source):
    refreshed(source)
    before = list(ContextFile.unscoped.values())
    with CaptureQueriesContext(connection) as queries:
        run = refreshed(source)
    assert (run.read, run.outcome) == (0, {})
    assert list(ContextFile.unscoped.values()) == before
    written = [q["sql"] for q in queries if q["sql"].startswith(("INSERT", "UPDATE", "DELETE"))]
    assert [sql for sql in written if "skills_refreshrun" not in sql] == []
    assert FileRevision.unscoped.count() == 2


def test_a_change_is_a_new_revision_and_goes_into_force(source, tree):
    refreshed(source)
    approve_file(file_at(source), digest=file_at(source).latest.digest, by=BY)
    rewrite(tree / "AGENTS.md", "Be very kind.\n")
    refreshed(source)
    file = file_at(source)
    assert (file.status, file.latest.number, file.active.number) == ("changed", 2, 2)
    assert file.revisions.get(number=1).last_seen_at == file.latest.first_seen_at


def test_a_file_changed_with_its_size_and_modification_time_kept_is_read_again(source, tree):
    refreshed(source)
    path = tree / "AGENTS.md"
    before = path.stat()
    path.write_text("Be cold.\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (
        before.st_size,
        before.st_mtime_ns,
        before.st_ino,
    )
    refreshed(source)
    assert file_at(source).latest.content.text == "Be cold.\n"


def test_a_poisoned_revision_waits_while_the_last_good_one_stays(source, tree):
    refreshed(source)
    rewrite(tree / "AGENTS.md", POISON)
    refreshed(source)
    file = file_at(source)
    assert (file.status, file.latest.verdict, file.active.number) == ("quarantined", "blocked", 1)
    assert file.active.content.text == "Be kind.\n"
    assert {finding["severity"] for finding in file.latest.findings} == {"block"}


def test_a_waiver_lets_exactly_that_content_in(source, tree):
    rewrite(tree / "AGENTS.md", POISON)
    refreshed(source)
    file = file_at(source)
    assert file.active is None
    until = timezone.now().date() + timedelta(days=3)
    waive_findings(file, digest=file.latest.digest, reason="A quotation.", until=until, by=BY)
    assert (file_at(source).status, file_at(source).active.number) == ("current", 1)
    rewrite(tree / "AGENTS.md", POISON + "more\n")
    refreshed(source)
    assert (file_at(source).status, file_at(source).active.number) == ("quarantined", 1)


def test_an_untrusted_skill_reaches_no_agent_until_someone_trusts_it(source, tree):
    path = ".agents/skills/tea/SKILL.md"
    refreshed(source)
    assert file_at(source, path).active is None
    approve_file(file_at(source, path), digest=file_at(source, path).latest.digest, by=BY)
    assert file_at(source, path).active.number == 1
    rewrite(tree / path, (tree / path).read_text() + "Wait.\n")
    refreshed(source)
    assert (file_at(source, path).status, file_at(source, path).active.number) == ("changed", 1)


def test_a_removed_file_leaves_and_returns(source, tree):
    refreshed(source)
    (tree / "AGENTS.md").rename(tree / "gone")
    refreshed(source)
    file = file_at(source)
    assert (file.status, file.active, file.latest.last_seen_at is None) == ("missing", None, False)
    (tree / "gone").rename(tree / "AGENTS.md")
    refreshed(source)
    file = file_at(source)
    assert (file.status, file.active.number, file.latest.last_seen_at) == ("new", 1, None)


def test_an_unreadable_file_keeps_its_last_valid_text(source, tree):
    refreshed(source)
    (tree / "AGENTS.md").unlink()
    os.mkfifo(tree / "AGENTS.md")
    refreshed(source)
    file = file_at(source)
    assert (file.status, file.active.number) == ("invalid", 1)
    assert file.problem


def test_manual_approval_keeps_the_old_text_until_it_is_approved(workspace, tree):
    source = make_source(workspace, tree, approval="manual")
    refreshed(source)
    assert file_at(source).active is None
    approve_file(file_at(source), digest=file_at(source).latest.digest, by=BY)
    rewrite(tree / "AGENTS.md", "Other words.\n")
    refreshed(source)
    assert file_at(source).active.number == 1
    approve_file(file_at(source), digest=file_at(source).latest.digest, by=BY)
    assert file_at(source).active.number == 2


def test_the_bell_rings_for_those_who_read_the_file_and_no_others(source, tree, workspace):
    rung = []
    near, far = make_agent(workspace, "near"), make_agent(workspace, "far")
    choose_context(near, source, "plain", working_directory="", expected=near.revision, by=BY)
    agent_changed.connect(hear := lambda agent_ids, **_: rung.append(agent_ids))
    refreshed(source)
    refreshed(source)
    agent_changed.disconnect(hear)
    assert rung == [[near.pk]]
    assert far.pk not in rung[0]


def test_an_ignored_file_stays_out_whatever_its_text(source, tree):
    refreshed(source)
    ignore_file(file_at(source), by=BY)
    rewrite(tree / "AGENTS.md", "Other words.\n")
    refreshed(source)
    assert (file_at(source).status, file_at(source).active) == ("ignored", None)


def test_equal_contents_are_stored_once(source, tree):
    (tree / "sub").mkdir()
    (tree / "sub" / "AGENTS.md").write_text("Be kind.\n")
    refreshed(source)
    assert Content.unscoped.count() == 2
    assert ContextFile.unscoped.count() == 3


def test_a_withdrawn_root_is_not_read_and_nothing_goes_missing(source, settings):
    refreshed(source)
    settings.DRAMATIS_SOURCE_ROOTS = []
    run = refreshed(source)
    assert (run.status, run.seen) == ("failed", 0)
    assert "no longer allow" in RefreshRun.unscoped.get(pk=run.pk).error
    assert file_at(source).status == "new"
