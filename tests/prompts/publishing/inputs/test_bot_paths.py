"""Files on disk, refresh, built prompt: the paths in every layout are those of the bot's machine."""

from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from personas.models import Agent, Workspace
from personas.records.services import edit_record
from prompts.assembly.builder import AssembledPrompt, build_filled_prompt
from prompts.assembly.layouts import LAYOUTS
from prompts.assembly.slots import Slots
from prompts.publishing.inputs import collect_inputs
from skills.agent_context.services import ContextSettings, SourceUse, choose_context
from skills.models import ContextFile, Source
from tests.factories import (
    BY,
    make_agent,
    make_channel,
    make_identity,
    make_skill,
    make_source,
    make_tool,
    refreshed,
)
from tests.skills.files.file_samples import approve_file_at, write

pytestmark = pytest.mark.django_db
HOME, PROJECT = "/home/user", "/home/user/project"
SKILL = "---\nname: {name}\ndescription: {description}\n---\n\nBoil water.\n"


@pytest.fixture
def roots(tmp_path: Path, settings: Any) -> Path:
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    settings.PUBLIC_URL = "https://dramatis.example.com"
    for name in ("home", "project"):
        (tmp_path / name).mkdir()
    return tmp_path


@pytest.fixture
def agent(workspace: Workspace) -> Agent:
    return make_agent(
        workspace,
        "pilot",
        channels=[make_channel(workspace, "deck")],
        identity=make_identity(workspace, display_name="Pilot"),
        tools=[make_tool(workspace, "read"), make_tool(workspace, "use_skill")],
    )


def write_files(root: Path, *paths: str) -> None:
    """Write files whose text tells where they are from."""
    for path in paths:
        name = path.split("/")[-2] if path.endswith("SKILL.md") else ""
        text = SKILL.format(name=name, description=f"From {root.name}.") if name else f"{root.name} {path}"
        write(root / path, text)


def read_files(source: Source) -> None:
    """Refresh a source and approve everything that waits."""
    refreshed(source)
    for file in ContextFile.objects.in_workspace(source.workspace_id).filter(source=source):
        if file.active_id is None:
            approve_file_at(source, file.path)


def choose(agent: Agent, uses: Any, harness: str, directory: str = "", **settings: Any) -> None:
    agent.refresh_from_db()
    choose_context(
        agent,
        uses,
        harness,
        working_directory=directory,
        expected=agent.revision,
        by=BY,
        settings=ContextSettings(**settings),
    )
    for use in uses if isinstance(uses, list) else [SourceUse(uses)]:
        read_files(use.source)


def build(agent: Agent, layout: str) -> AssembledPrompt:
    agent.refresh_from_db()
    [collected] = collect_inputs(agent.workspace_id, [agent], at=timezone.now())
    return build_filled_prompt(LAYOUTS[layout], collected.inputs, Slots())


def list_in_order(text: str, *parts: str) -> list[str]:
    """Return those parts that the text contains, in the order of the text."""
    return sorted([part for part in parts if part in text], key=text.index)


# --- one source -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_layout_prints_absolute_paths_below_the_location(
    workspace: Workspace, agent: Agent, roots: Path
):
    root = roots / "project"
    write_files(root, "AGENTS.md", "CLAUDE.md", "src/AGENTS.md", "src/.agents/skills/tea/SKILL.md")
    write_files(root, "src/.moltis/skills/tea/SKILL.md")
    source = make_source(workspace, root, location=f"{PROJECT}/")
    assert source.location == PROJECT
    choose(agent, source, "opal", "src")
    opal = build(agent, "opal").text
    assert f'<project-context source="{PROJECT}/AGENTS.md">\nproject AGENTS.md\n</project-context>' in opal
    assert f'<project-context source="{PROJECT}/src/AGENTS.md">' in opal
    assert f"Working directory: {PROJECT}/src" in opal
    choose(agent, source, "pi", "src")
    pi = build(agent, "pi").text
    assert f"## {PROJECT}/AGENTS.md\n\nproject AGENTS.md" in pi
    assert f"<location>{PROJECT}/src/.agents/skills/tea/SKILL.md</location>" in pi
    assert f"Current working directory: {PROJECT}/src" in pi
    choose(agent, source, "moltis", "src")
    moltis = build(agent, "moltis").text
    assert f"### {PROJECT}/CLAUDE.md" in moltis
    assert (
        f'<skill name="tea" source="skill" path="{PROJECT}/src/.moltis/skills/tea">\nFrom project.' in moltis
    )
    choose(agent, source, "plain", "src")
    ours = build(agent, "dramatis").text
    assert f'<context source="{PROJECT}/src/AGENTS.md">' in ours
    assert f"({PROJECT}/src/.agents/skills/tea/SKILL.md)" in ours


def test_without_a_location_paths_are_relative_to_the_root(workspace: Workspace, agent: Agent, roots: Path):
    write_files(roots / "project", "AGENTS.md", "src/AGENTS.md", "src/.agents/skills/tea/SKILL.md")
    choose(agent, make_source(workspace, roots / "project"), "pi", "src")
    text = build(agent, "pi").text
    assert "## AGENTS.md\n" in text
    assert "<location>src/.agents/skills/tea/SKILL.md</location>" in text
    assert "Current working directory: src" in text


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["opal", "pi", "moltis", "dramatis"])
def test_line_breaks_at_the_end_of_a_file_leave_no_blank_lines(
    workspace: Workspace, agent: Agent, roots: Path, layout: str
):
    texts: dict[str, str] = {}
    for ending in ("", "\n", "\r\n\r\n"):
        for path in ("AGENTS.md", ".sf/SYSTEM.md", ".moltis/AGENTS.md", ".moltis/SOUL.md"):
            write(roots / "project" / path, f"Text of {path}{ending}")
        source = make_source(workspace, roots / "project", f"Source {len(texts)}", location=PROJECT)
        choose(agent, source, "plain" if layout == "dramatis" else layout)
        texts[ending] = build(agent, layout).text
    assert "Text of AGENTS.md" in texts[""]
    assert texts["\n"] == texts["\r\n\r\n"] == texts[""]


def test_origins_keep_the_relative_path(workspace: Workspace, agent: Agent, roots: Path):
    write_files(roots / "project", "AGENTS.md", ".agents/skills/tea/SKILL.md")
    choose(agent, make_source(workspace, roots / "project", location=PROJECT), "pi")
    paths = {segment.origin.path for segment in build(agent, "pi").segments}
    assert {"AGENTS.md", ".agents/skills/tea/SKILL.md"} <= paths
    assert not [path for path in paths if path.startswith("/")]


def test_an_agent_overrides_the_location_of_a_source(workspace: Workspace, agent: Agent, roots: Path):
    write_files(roots / "project", "AGENTS.md")
    source = make_source(workspace, roots / "project", location=PROJECT)
    choose(agent, [SourceUse(source, location="/srv/checkout")], "pi")
    assert "## /srv/checkout/AGENTS.md\n" in build(agent, "pi").text


@pytest.mark.slow
def test_a_windows_location_is_joined_with_backslashes(workspace: Workspace, agent: Agent, roots: Path):
    root = roots / "project"
    write_files(root, "AGENTS.md", ".moltis/skills/tea/SKILL.md", ".agents/skills/tea/SKILL.md")
    write_files(root, ".moltis/AGENTS.md")
    source = make_source(workspace, root, location="C:\\Users\\you\\app")
    choose(agent, source, "pi", "src")
    pi = build(agent, "pi").text
    assert "## C:\\Users\\you\\app\\AGENTS.md" in pi
    assert "<location>C:\\Users\\you\\app\\src" not in pi
    choose(agent, source, "pi")
    opal = build(agent, "opal")
    assert "Working directory: C:\\Users\\you\\app" in opal.text
    assert "**tea**" in opal.text
    choose(agent, source, "moltis")
    moltis = build(agent, "moltis").text
    assert 'path="C:\\Users\\you\\app\\.moltis\\skills\\tea"' in moltis
    assert "### AGENTS.md\n" in moltis


def test_a_changed_location_reaches_the_prompt(workspace: Workspace, agent: Agent, roots: Path):
    write_files(roots / "project", "AGENTS.md")
    source = make_source(workspace, roots / "project", location=PROJECT)
    choose(agent, source, "pi")
    source = edit_record(source, {"location": "/opt/app"}, expected=source.revision, by=BY)
    assert agent.pk in source.agent_ids()
    assert "## /opt/app/AGENTS.md\n" in build(agent, "pi").text


# --- working directories --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("directory", [f"{PROJECT}/src", "src", "~/project/src"])
def test_a_working_directory_is_mapped_to_the_source(
    workspace: Workspace, agent: Agent, roots: Path, directory: str
):
    write_files(roots / "project", "AGENTS.md", "src/AGENTS.md", "docs/AGENTS.md")
    home = make_source(workspace, roots / "home", "Home", location=HOME)
    project = make_source(workspace, roots / "project", location=PROJECT)
    choose(agent, [SourceUse(home, "home"), SourceUse(project, "project")], "opal", directory)
    text = build(agent, "opal").text
    wanted = [f"{PROJECT}/AGENTS.md", f"{PROJECT}/src/AGENTS.md"]
    assert list_in_order(text, *wanted, f"{PROJECT}/docs/AGENTS.md") == wanted
    assert f"Working directory: {PROJECT}/src" in text


def test_a_directory_outside_of_all_sources_is_printed_and_the_root_is_read(
    workspace: Workspace, agent: Agent, roots: Path
):
    write_files(roots / "project", "AGENTS.md", "src/AGENTS.md")
    choose(agent, make_source(workspace, roots / "project", location=PROJECT), "opal", "/elsewhere/src")
    text = build(agent, "opal").text
    assert "Working directory: /elsewhere/src" in text
    assert f"{PROJECT}/AGENTS.md" in text
    assert f"{PROJECT}/src/AGENTS.md" not in text


# --- several sources ------------------------------------------------------------------------------------


@pytest.fixture
def uses(workspace: Workspace, roots: Path) -> list[SourceUse]:
    home = make_source(workspace, roots / "home", "Home", location=HOME)
    project = make_source(workspace, roots / "project", location=PROJECT)
    return [SourceUse(home, "home"), SourceUse(project, "project")]


@pytest.mark.slow
def test_opal_reads_global_skills_from_home_and_context_upwards(
    agent: Agent, roots: Path, uses: list[SourceUse]
):
    write_files(roots / "home", "AGENTS.md", "project/AGENTS.md", ".agents/skills/tea/SKILL.md")
    write_files(roots / "home", ".opal/skills/home-only/SKILL.md", ".github/skills/never/SKILL.md")
    write_files(roots / "project", "AGENTS.md", ".agents/skills/tea/SKILL.md", ".opal/skills/odd/SKILL.md")
    choose(agent, uses, "opal", PROJECT)
    text = build(agent, "opal").text
    # The walk goes from the project up to the home directory. The project's folder is read in its own source.
    assert list_in_order(text, f"{HOME}/AGENTS.md", f"{PROJECT}/AGENTS.md") == [
        f"{HOME}/AGENTS.md",
        f"{PROJECT}/AGENTS.md",
    ]
    assert "home project/AGENTS.md" not in text
    assert "- **tea**: From project." in text
    assert "- **home-only**: From home." in text
    assert "never" not in text
    assert "odd" not in text


@pytest.mark.slow
def test_pi_prefers_the_projects_system_file_and_reads_the_global_agents_file_first(
    agent: Agent, roots: Path, uses: list[SourceUse]
):
    write_files(roots / "home", ".sf/agent/AGENTS.md", ".sf/agent/SYSTEM.md", ".agents/skills/pot/SKILL.md")
    write_files(roots / "project", ".sf/SYSTEM.md", "AGENTS.md", ".sf/agent/AGENTS.md")
    choose(agent, uses, "pi")
    text = build(agent, "pi").text
    assert text.startswith("project .sf/SYSTEM.md")
    assert "home .sf/agent/SYSTEM.md" not in text
    assert "project .sf/agent/AGENTS.md" not in text
    headings = [f"## {HOME}/.sf/agent/AGENTS.md", f"## {PROJECT}/AGENTS.md"]
    assert list_in_order(text, *headings) == headings
    assert f"<location>{HOME}/.agents/skills/pot/SKILL.md</location>" in text
    (roots / "project/.sf/SYSTEM.md").unlink()
    refreshed(uses[1].source)
    approve_file_at(uses[1].source, ".sf/SYSTEM.md")
    assert build(agent, "pi").text.startswith("home .sf/agent/SYSTEM.md")


def test_moltis_reads_workspace_files_and_persona_from_home(agent: Agent, roots: Path, uses: list[SourceUse]):
    write_files(roots / "home", ".moltis/AGENTS.md", ".moltis/TOOLS.md", ".moltis/SOUL.md")
    write_files(roots / "project", "CLAUDE.md", ".moltis/AGENTS.md", ".moltis/SOUL.md")
    choose(agent, uses, "moltis")
    text = build(agent, "moltis").text
    assert "home .moltis/AGENTS.md" in text
    assert "home .moltis/SOUL.md" in text
    assert "project .moltis" not in text
    assert f"### {PROJECT}/CLAUDE.md" in text


@pytest.mark.slow
def test_the_last_of_two_projects_has_the_highest_priority(workspace: Workspace, agent: Agent, roots: Path):
    write_files(roots / "home", "AGENTS.md", ".agents/skills/tea/SKILL.md")
    write_files(roots / "project", "AGENTS.md", ".agents/skills/tea/SKILL.md")
    first = make_source(workspace, roots / "home", "First", location="/srv/first")
    second = make_source(workspace, roots / "project", "Second", location="/srv/second")
    for order in ([first, second], [second, first]):
        choose(agent, [SourceUse(source, "project") for source in order], "pi")
        text, locations = build(agent, "pi").text, [source.location for source in order]
        assert list_in_order(text, *[f"## {path}/AGENTS.md" for path in locations]) == [
            f"## {path}/AGENTS.md" for path in locations
        ]
        assert f"<location>{locations[1]}/.agents/skills/tea/SKILL.md</location>" in text
        assert text.count("<name>tea</name>") == 1


# --- settings -------------------------------------------------------------------------------------------


def test_context_files_and_skills_can_be_turned_off(workspace: Workspace, agent: Agent, roots: Path):
    write_files(roots / "project", "AGENTS.md", ".sf/SYSTEM.md", ".agents/skills/tea/SKILL.md")
    make_skill(workspace, "knots", for_all_agents=True)
    source = make_source(workspace, roots / "project", location=PROJECT)
    choose(agent, source, "pi", has_context_files=False)
    text = build(agent, "pi").text
    assert "AGENTS.md" not in text
    assert "project .sf/SYSTEM.md" in text
    assert "<name>tea</name>" in text
    choose(agent, source, "pi", has_skills=False)
    text = build(agent, "pi").text
    assert "AGENTS.md" in text
    assert "available_skills" not in text


def test_other_file_names_are_looked_for_in_all_variants(workspace: Workspace, agent: Agent, roots: Path):
    write_files(roots / "project", "AGENTS.md", "TEAM.md", ".opal/TEAM.md", "src/.agents/TEAM.md")
    source = make_source(workspace, roots / "project", location=PROJECT)
    choose(agent, source, "opal", "src", file_names=["TEAM.md"])
    text = build(agent, "opal").text
    wanted = [f"{PROJECT}/{path}" for path in ("TEAM.md", ".opal/TEAM.md", "src/.agents/TEAM.md")]
    assert list_in_order(text, *[f'"{path}"' for path in wanted]) == [f'"{path}"' for path in wanted]
    assert "AGENTS.md" not in text


@pytest.mark.slow
def test_additional_skill_folders_are_read_last(agent: Agent, roots: Path, uses: list[SourceUse]):
    write_files(roots / "home", "library/global/SKILL.md")
    write_files(roots / "project", "tools/local/SKILL.md", "tools/tea/SKILL.md", "absolute/deep/SKILL.md")
    write_files(roots / "project", ".agents/skills/tea/SKILL.md")
    folders = ["tools", "~/library", f"{PROJECT}/absolute"]
    choose(agent, uses, "pi", extra_skill_folders=folders)
    text = build(agent, "pi").text
    for path in (
        "home/user/library/global",
        "home/user/project/tools/local",
        "home/user/project/absolute/deep",
    ):
        assert f"<location>/{path}/SKILL.md</location>" in text
    assert f"<location>{PROJECT}/.agents/skills/tea/SKILL.md</location>" in text
    assert text.count("<name>tea</name>") == 1


# --- skills without a file ------------------------------------------------------------------------------


def test_a_skill_without_a_file_has_the_url_of_its_text(workspace: Workspace, agent: Agent, roots: Path):
    make_skill(workspace, "knots", for_all_agents=True)
    url = "https://dramatis.example.com/api/v1/agents/pilot/channels/deck/skills/knots"
    assert f"<location>{url}/SKILL.md</location>" in build(agent, "pi").text
    assert f'path="{url}"' in build(agent, "moltis").text
    assert "**knots**" in build(agent, "opal").text


def test_a_skill_without_a_file_lies_in_the_pulled_folder(workspace: Workspace, agent: Agent, roots: Path):
    make_skill(workspace, "knots", for_all_agents=True)
    choose(agent, [], "pi", pulled_skills_folder="/home/user/.dramatis/skills/")
    assert "<location>/home/user/.dramatis/skills/knots/SKILL.md</location>" in build(agent, "pi").text
    assert 'path="/home/user/.dramatis/skills/knots"' in build(agent, "moltis").text
