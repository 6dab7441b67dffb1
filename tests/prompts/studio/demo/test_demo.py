"""The demo workspace is complete, and unchanged after a second run."""

from collections import Counter
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.conf import settings as project
from django.test.utils import override_settings
from django.utils import timezone

from personas.models import LAYOUTS, Agent, Memory, MemoryStatus, Soul, Workspace, WorkspaceOwned
from prompts.publishing.builds.compiler import assemble_prompt
from prompts.publishing.inputs import collect_inputs
from prompts.studio.demo.load import load_demo
from skills.agent_context.effective import get_effective_context
from skills.models import ContextFile
from skills.sources.readers import get_readers_by_agent
from tests.module_fixtures import rows_of_a_module
from tests.prompts.studio.demo.demo_stage import (
    GERMAN,
    SILENT,
    SUPPORT,
    WINTERS,
    file_at,
    files_below,
    states,
)


def counts():
    models = [model for model in apps.get_models() if issubclass(model, WorkspaceOwned)]
    return {model.__name__: model.unscoped.count() for model in models}


@pytest.fixture(scope="module")
def loaded(django_db_setup, django_db_blocker, tmp_path_factory):
    """The demo, loaded once for all tests that only read it or load it again."""
    top = tmp_path_factory.mktemp("demo")
    with rows_of_a_module(django_db_blocker):
        with django_db_blocker.unblock(), override_settings(**files_below(top)):
            pk = load_demo().pk
        yield SimpleNamespace(pk=pk, files=top / "larkfell", settings=files_below(top))


@pytest.fixture
def demo(loaded, db):
    with override_settings(**loaded.settings):
        yield Workspace.objects.get(pk=loaded.pk)


def on_disk(folder):
    """Return every file with its content and modification time."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def test_a_second_run_leaves_the_same_counts(demo, loaded):
    first, files, rows = counts(), on_disk(loaded.files), list(ContextFile.unscoped.values())
    load_demo()
    assert counts() == first
    assert on_disk(loaded.files) == files
    assert list(ContextFile.unscoped.values()) == rows


def test_the_demo_files_of_tests_are_outside_the_checkout():
    assert not project.DEMO_SOURCES.is_relative_to(project.BASE_DIR)
    assert not project.VAR.is_relative_to(project.BASE_DIR)


def test_the_demo_covers_all_features(demo):
    agents = Agent.objects.in_workspace(demo)
    memories = Memory.objects.in_workspace(demo)
    assert set(agents.values_list("layout", flat=True)) == set(LAYOUTS)
    assert agents.filter(parent=None).count() == 6
    assert agents.exclude(parent=None).count() == 1
    assert memories.count() == 30
    assert set(memories.values_list("status", flat=True)) == set(MemoryStatus.values)
    shared = Counter(agents.exclude(soul=None).values_list("soul", flat=True))
    assert max(shared.values()) >= 2
    assert Soul.objects.in_workspace(demo).count() >= 3


def test_edited_demo_records_are_not_overwritten(demo):
    Soul.objects.in_workspace(demo).update(text="Mine now.")
    load_demo()
    assert set(Soul.objects.in_workspace(demo).values_list("text", flat=True)) == {"Mine now."}


# --- files ---------------------------------------------------------------------------------------------


def test_the_demo_files_have_every_state(demo, loaded):
    states_by_path = states(demo)
    assert Counter(states_by_path.values()) == {
        "current": 18,
        "changed": 1,
        "new": 1,
        "quarantined": 1,
        "invalid": 1,
        "ignored": 1,
    }
    assert (states_by_path[SILENT], states_by_path[WINTERS], states_by_path[GERMAN]) == (
        "changed",
        "new",
        "invalid",
    )
    poisoned = file_at(demo, SUPPORT)
    assert (poisoned.status, poisoned.revisions.count(), poisoned.active.number) == ("quarantined", 2, 1)
    assert "portal" not in poisoned.active.content.text
    assert "\u202e" in (loaded.files / SUPPORT).read_text()


def test_every_agent_reads_the_tree_by_rules_that_fit_its_layout(demo):
    views = {one.agent.slug: one for one in get_readers_by_agent(demo).values()}
    assert set(views) == set(Agent.objects.in_workspace(demo).values_list("slug", flat=True))
    harnesses = {slug: one.harness.name for slug, one in views.items()}
    assert (harnesses["code-review"], harnesses["release-captain"], harnesses["first-week"]) == (
        "opal",
        "pi",
        "moltis",
    )
    assert views["bench-tests"].is_inherited
    for slug, view in views.items():
        assert get_effective_context(view.agent).files, slug
    skills = {one.name for one in get_effective_context(views["release-captain"].agent).skills if one.file}
    assert skills == {"cut-a-release"}


def collect_demo_text(demo: Workspace, slug: str) -> str:
    agent = Agent.objects.in_workspace(demo).get(slug=slug)
    prompts = collect_inputs(demo, [agent], at=timezone.now())
    return assemble_prompt(prompts[0]).text


def test_the_demo_shows_data_storage_and_documentation(demo):
    research = collect_demo_text(demo, "field-research")
    assert "| `ctx/question` | `:string` |" in research
    assert '{id: "SKB-1", model: "Heron 3", since: 2022}, ...]` (3 items)' in research
    assert "| `ctx/_archive_key` | `:string` | [Hidden] |" in research
    assert "path: [Hidden]" in research
    assert "\n\nReturn format: {answer :string, figures [" in research
    night = collect_demo_text(demo, "night-shift")
    assert "additional directories:\n- archive/readings\n- handbook\n</Directories>" in night
    assert "<Storage>" in night
    assert "- Main documentation: docs/README.md\n" in collect_demo_text(demo, "release-captain")
