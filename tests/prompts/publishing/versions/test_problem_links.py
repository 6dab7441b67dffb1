"""Problems of a build name the file with a link to its page, in the version and in the Studio."""

from pathlib import Path
from typing import Any

import pytest

from personas.actors import Actor
from personas.models import Agent
from personas.records.services import edit_record
from prompts.models import AgentPrompt
from skills.agent_context.services import choose_context
from tests.factories import BY, make_agent, make_channel, make_source, refreshed
from tests.skills.files.file_samples import GOOD, POISON, file_at, write

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def agent(workspace, tmp_path: Path, settings: Any) -> Agent:
    """An agent with a quarantined file, built with this problem."""
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    write(tmp_path / "files/AGENTS.md", GOOD)
    write(tmp_path / "files/docs/AGENTS.md", POISON)
    source = make_source(workspace, tmp_path / "files")
    refreshed(source)
    agent = make_agent(workspace, "clerk", channels=[make_channel(workspace, "desk")])
    choose_context(agent, source, "plain", working_directory="docs", expected=agent.revision, by=BY)
    agent.refresh_from_db()
    return agent


def test_the_problem_links_to_the_file(as_alice, workspace, agent):
    file = file_at(agent.context.uses.get().source, "docs/AGENTS.md")
    url = f"/w/{workspace.slug}/files/{file.pk}/"
    link = f'<a class="dr-link dr-mono" href="{url}">docs/AGENTS.md</a>: quarantined.'
    studio = as_alice.get(f"/w/{workspace.slug}/studio/clerk/").content.decode()
    assert link in studio
    prompt: Any = AgentPrompt.unscoped.get(agent=agent)
    page = as_alice.get(f"/w/{workspace.slug}/prompts/{prompt.pk}/versions/{prompt.latest.number}/")
    assert link in page.content.decode()


def test_the_studio_switches_between_agents(as_alice, workspace, agent):
    make_agent(workspace, "pilot")
    page = as_alice.get(f"/w/{workspace.slug}/studio/clerk/").content.decode()
    assert f'href="/w/{workspace.slug}/studio/pilot/"' in page
    assert f'href="/w/{workspace.slug}/studio/clerk/" aria-current="page"' in page


def test_origins_show_the_name_of_a_member(as_alice, workspace, agent, alice):
    edit_record(agent, {"instructions": "Be short."}, expected=agent.revision, by=Actor.person(alice))
    prompt: Any = AgentPrompt.unscoped.get(agent=agent)
    page = as_alice.get(
        f"/w/{workspace.slug}/prompts/{prompt.pk}/versions/{prompt.latest.number}/"
    ).content.decode()
    main = page.partition("<main")[2].partition("</main>")[0]
    assert ">Alice<" in main
    assert ">alice@example.com<" not in main
