"""The demo workspace: complete, believable, and the same after a second run."""

from collections import Counter
from io import StringIO

import pytest
from django.apps import apps
from django.conf import settings as project
from django.core.management import CommandError, call_command
from django.db import transaction

from personas.models import LAYOUTS, Agent, Memory, MemoryState, Soul, WorkspaceOwned
from prompts.demo.load import load_demo
from skills.models import ContextFile, Source
from skills.selectors.contexts import outlooks_of
from skills.selectors.in_use import given_to


def counts():
    models = [model for model in apps.get_models() if issubclass(model, WorkspaceOwned)]
    return {model.__name__: model.unscoped.count() for model in models}


@pytest.fixture
def sources(tmp_path, settings):
    """A folder of the test's own for the demo's files."""
    settings.DEMO_SOURCES = tmp_path
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    return tmp_path / "larkfell"


def on_disk(folder):
    """Every file with its words and its time."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def states(workspace):
    return dict(ContextFile.objects.in_workspace(workspace).values_list("path", "state"))


@pytest.mark.django_db
def test_a_second_run_leaves_the_same_counts(sources):
    load_demo()
    first, files, rows = counts(), on_disk(sources), list(ContextFile.unscoped.values())
    load_demo()
    assert counts() == first
    assert on_disk(sources) == files
    assert list(ContextFile.unscoped.values()) == rows


def test_the_demo_of_tests_lies_outside_the_checkout():
    assert not project.DEMO_SOURCES.is_relative_to(project.BASE_DIR)
    assert not project.VAR.is_relative_to(project.BASE_DIR)


@pytest.mark.django_db
def test_the_cast_shows_all_the_product_can_do():
    workspace = load_demo()
    agents = Agent.objects.in_workspace(workspace)
    memories = Memory.objects.in_workspace(workspace)
    assert set(agents.values_list("layout", flat=True)) == set(LAYOUTS)
    assert agents.filter(parent=None).count() == 6
    assert agents.exclude(parent=None).count() == 1
    assert memories.count() == 30
    assert set(memories.values_list("state", flat=True)) == set(MemoryState.values)
    shared = Counter(agents.exclude(soul=None).values_list("soul", flat=True))
    assert max(shared.values()) >= 2
    assert Soul.objects.in_workspace(workspace).count() >= 3


@pytest.mark.django_db
def test_what_someone_changed_in_the_demo_is_left_alone():
    workspace = load_demo()
    Soul.objects.in_workspace(workspace).update(text="Mine now.")
    load_demo()
    assert set(Soul.objects.in_workspace(workspace).values_list("text", flat=True)) == {"Mine now."}


@pytest.mark.django_db
def test_production_refuses_the_demo(settings):
    settings.PRODUCTION = True
    with pytest.raises(CommandError, match="not for production"):
        call_command("demo")


# --- its files -----------------------------------------------------------------------------------------

SILENT, WINTERS = "operations/AGENTS.md", "research/.agents/skills/compare-two-winters/SKILL.md"
SUPPORT, GERMAN = "support/AGENTS.md", "support/.agents/skills/answer-in-german/SKILL.md"


def file_at(workspace, path):
    return ContextFile.objects.in_workspace(workspace).select_related("in_force__content").get(path=path)


@pytest.mark.django_db
def test_the_files_look_lived_in_and_leave_something_for_the_inbox(sources):
    workspace = load_demo()
    found = states(workspace)
    assert Counter(found.values()) == {
        "current": 18,
        "changed": 1,
        "new": 1,
        "quarantined": 1,
        "invalid": 1,
        "ignored": 1,
    }
    assert (found[SILENT], found[WINTERS], found[GERMAN]) == ("changed", "new", "invalid")
    poisoned = file_at(workspace, SUPPORT)
    assert (poisoned.state, poisoned.revisions.count(), poisoned.in_force.number) == ("quarantined", 2, 1)
    assert "portal" not in poisoned.in_force.content.text
    assert "\u202e" in (sources / SUPPORT).read_text()


@pytest.mark.django_db
def test_every_agent_reads_the_tree_by_rules_that_fit_its_layout(sources):
    workspace = load_demo()
    outlooks = {one.agent.slug: one for one in outlooks_of(workspace).values()}
    assert set(outlooks) == set(Agent.objects.in_workspace(workspace).values_list("slug", flat=True))
    fitting = {slug: one.harness.name for slug, one in outlooks.items()}
    assert (fitting["code-review"], fitting["release-captain"], fitting["first-week"]) == (
        "opal",
        "pi",
        "moltis",
    )
    assert outlooks["bench-tests"].is_inherited
    for slug, outlook in outlooks.items():
        assert given_to(outlook.agent).files, slug
    skills = {one.name for one in given_to(outlooks["release-captain"].agent).skills if one.file}
    assert skills == {"cut-a-release"}


@pytest.mark.django_db
def test_what_someone_wrote_on_disk_is_never_overwritten(sources):
    mine = {"AGENTS.md": "Mine.\n", SILENT: "Mine too.\n", SUPPORT: "And mine.\n"}
    for path, text in mine.items():
        (sources / path).parent.mkdir(parents=True, exist_ok=True)
        (sources / path).write_text(text)
    workspace = load_demo()
    assert {path: (sources / path).read_text() for path in mine} == mine
    assert file_at(workspace, SUPPORT).state == "current"
    load_demo()
    assert {path: (sources / path).read_text() for path in mine} == mine


@pytest.mark.django_db
def test_a_database_that_starts_anew_hears_the_whole_story_from_the_same_folder(sources):
    """Rows go with the transaction, files stay."""
    with transaction.atomic():
        first = states(load_demo())
        transaction.set_rollback(True)
    assert not Source.unscoped.exists()
    assert (sources / SUPPORT).exists()
    assert states(load_demo()) == first


@pytest.mark.django_db
def test_a_missing_file_is_laid_out_again(sources):
    load_demo()
    before = on_disk(sources)
    (sources / SILENT).unlink()
    load_demo()
    assert on_disk(sources)[sources / SILENT][0] == before[sources / SILENT][0]


@pytest.mark.django_db
def test_without_leave_to_read_there_the_demo_does_without_its_files(sources, settings):
    settings.DRAMATIS_SOURCE_ROOTS = []
    said = StringIO()
    call_command("demo", stdout=said)
    assert not Source.unscoped.exists()
    assert not sources.exists()
    assert "DRAMATIS_SOURCE_ROOTS" in said.getvalue()
