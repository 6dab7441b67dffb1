"""Version pages show that a source file has changed since."""

import pytest

from prompts.assembly.segments import Origin
from prompts.models import AgentPrompt
from prompts.publishing.provenance.origins import describe_file_changes
from skills.agent_context.services import choose_context
from tests.factories import BY, make_agent, make_channel, make_source, refreshed
from tests.shared_cast import (  # noqa: F401  # fixtures
    shared_alice,
    shared_as_alice,
    shared_as_bob,
    shared_as_mallory,
    shared_bob,
    shared_cast,
    shared_commits,
    shared_elsewhere,
    shared_mallory,
    shared_workspace,
)
from tests.skills.files.file_samples import GOOD, approve_file_at, file_at, write

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("commits")]


@pytest.fixture
def source(workspace, tmp_path, settings):
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    write(tmp_path / "AGENTS.md", GOOD)
    # A second file, because a refresh that finds nothing at all is held.
    write(tmp_path / "CLAUDE.md", GOOD)
    source = make_source(workspace, tmp_path)
    refreshed(source)
    approve_file_at(source)
    return source


def origin(source, revision: int = 1) -> Origin:
    return Origin("context_file", str(file_at(source).pk), revision, "AGENTS.md")


def test_a_changed_file_and_a_missing_one_are_reported(source, workspace, tmp_path):
    write(tmp_path / "AGENTS.md", "Be kinder.\n")
    refreshed(source)
    assert describe_file_changes(workspace, [origin(source)]) == {
        origin(source): "File changed, now at revision 2"
    }
    assert describe_file_changes(workspace, [origin(source, 2)]) == {}
    (tmp_path / "AGENTS.md").unlink()
    refreshed(source)
    assert describe_file_changes(workspace, [origin(source)]) == {origin(source): "File deleted"}


def test_unchanged_files_other_origins_and_other_workspaces_are_left_out(
    source, workspace, elsewhere, django_assert_num_queries
):
    here = origin(source)
    with django_assert_num_queries(1):
        assert describe_file_changes(workspace, [here]) == {}
    with django_assert_num_queries(0):
        assert (
            describe_file_changes(workspace, [Origin("soul", "1", 1), Origin("context_file", "", 1, "x.md")])
            == {}
        )
    assert describe_file_changes(elsewhere, [origin(source, 7)]) == {}


@pytest.mark.slow
def test_the_version_page_shows_the_change_next_to_the_text(source, workspace, tmp_path, as_bob):
    agent = make_agent(workspace, "reader", channels=[make_channel(workspace, "deck")])
    choose_context(agent, source, "plain", working_directory="", expected=agent.revision, by=BY)
    prompt = AgentPrompt.objects.in_workspace(workspace).get(agent=agent)
    path = f"/w/{workspace.slug}/prompts/{prompt.pk}/versions/{prompt.last_number}/"
    assert "Source changed" not in as_bob.get(path).content.decode()
    write(tmp_path / "AGENTS.md", "Be kinder.\n")
    refreshed(source)
    html = as_bob.get(path).content.decode()
    assert "1 file changed" in html
    assert (
        f'<a href="/w/{workspace.slug}/files/{file_at(source).pk}/">File changed, now at revision 2</a>'
        in html
    )
