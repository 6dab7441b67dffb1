"""Sources of one agent whose folders overlap: no file of a project is hidden, and none is read twice."""

# ruff: noqa: F811  # fixtures are imported and requested by name

from pathlib import Path

import pytest
from django.test.utils import override_settings

from personas.models import Agent, Workspace
from skills.agent_context.effective import get_effective_context
from skills.agent_context.services import ContextSettings, SourceUse, choose_context
from skills.discovery import agent_search
from skills.models import ContextFile, Source
from skills.sources import folders
from tests.factories import BY, make_agent, make_source, refreshed
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
from tests.skills.files.file_samples import SKILL, approve_file_at, write

pytestmark = pytest.mark.django_db
SYSTEM, GLOBAL_SYSTEM = ".sf/SYSTEM.md", ".sf/agent/SYSTEM.md"


def skill_at(name: str) -> str:
    return f".agents/skills/{name}/SKILL.md"


@pytest.fixture
def disk(tmp_path):
    """The file system of a bot below a folder of the test, with files of every kind in /, /t, /t/proj."""
    for folder in ("", "t/", "t/proj/"):
        write(tmp_path / f"{folder}AGENTS.md", f"Rules of /{folder}\n")
        write(tmp_path / folder / SYSTEM, f"System of /{folder}\n")
        write(tmp_path / folder / GLOBAL_SYSTEM, f"Global system of /{folder}\n")
        name = f"in-{folder.strip('/').replace('/', '-') or 'root'}"
        write(tmp_path / folder / skill_at(name), SKILL.format(name=name, description="Makes tea."))
    with override_settings(DRAMATIS_SOURCE_ROOTS=[tmp_path]):
        yield tmp_path


@pytest.fixture
def agent(workspace: Workspace) -> Agent:
    return make_agent(workspace, "pilot", layout="pi")


def add_source(workspace: Workspace, disk: Path, location: str, name: str = "", **values) -> Source:
    name = name or f"Source {location}"
    source = make_source(workspace, disk / location.strip("/"), name, location=location, **values)
    refresh_and_trust(source)
    return source


def refresh_and_trust(source: Source) -> None:
    """Refresh a source and approve its skills, which nobody trusts otherwise."""
    refreshed(source)
    rows = ContextFile.objects.in_workspace(source.workspace_id).filter(source=source, file_kind="skill")
    for path in rows.values_list("path", flat=True):
        approve_file_at(source, path)


def add_pushed_source(workspace: Workspace, location: str, files: dict[str, str]) -> Source:
    source = make_pushed(workspace, f"Pushed {location}", location=location)
    push_and_refresh(source, files)
    return source


def choose(agent: Agent, *uses: tuple[Source, str], directory: str = "/t/proj", **settings) -> None:
    agent.refresh_from_db()
    choose_context(
        agent,
        [SourceUse(source, scope) for source, scope in uses],
        "pi",
        working_directory=directory,
        expected=agent.revision,
        by=BY,
        settings=ContextSettings(**settings),
    )


def read(agent: Agent) -> dict[str, list[str]]:
    """Return the texts by kind, and the paths of the used skills, in the order of the prompt."""
    agent.refresh_from_db()
    context = get_effective_context(agent)
    texts: dict[str, list[str]] = {}
    for file in context.files:
        texts.setdefault(file.kind, []).append(file.text.strip())
    paths = [file.bot_path for file in context.files] + [skill.bot_path for skill in context.skills]
    assert len(paths) == len(set(paths)), f"read twice: {paths}"
    assert not [skill for skill in context.skills if skill.hidden_by]
    return texts | {"skill": [skill.bot_path for skill in context.skills]}


ALL_RULES = ["Rules of /", "Rules of /t/", "Rules of /t/proj/"]
PROJECT_SKILL = f"/t/proj/{skill_at('in-t-proj')}"
HOME_SKILL = f"/t/{skill_at('in-t')}"


@pytest.mark.parametrize("is_home_first", [True, False])
@pytest.mark.parametrize("home", ["/", "/t", "/t/proj"])
@pytest.mark.parametrize("project", ["/", "/t", "/t/proj"])
def test_a_home_source_never_hides_files_of_the_project(  # noqa: PLR0917  # parameters
    workspace, agent, disk, project, home, is_home_first
):
    uses = [
        (add_source(workspace, disk, home, "Home"), "home"),
        (add_source(workspace, disk, project, "Project"), "project"),
    ]
    choose(agent, *(uses if is_home_first else reversed(uses)))
    texts = read(agent)
    assert texts["base"] == ["System of /t/proj/"]
    assert PROJECT_SKILL in texts["skill"]
    shallowest = min(home, project, key=len)
    expected = ALL_RULES[["/", "/t", "/t/proj"].index(shallowest) :]
    assert set(texts["context"]) == set(expected)
    if is_home_first:
        assert texts["context"] == expected


def test_files_that_only_the_home_source_has_are_read_too(workspace, agent, disk):
    home = add_pushed_source(
        workspace, "/t", {"proj/AGENTS.md": "Only at home.\n", GLOBAL_SYSTEM: "Global.\n"}
    )
    for path in ("t/proj/AGENTS.md", f"t/proj/{SYSTEM}"):
        (disk / path).unlink()
    project = add_source(workspace, disk, "/", "Project")
    choose(agent, (home, "home"), (project, "project"))
    texts = read(agent)
    assert texts["base"] == ["Global."]
    assert texts["context"] == ["Rules of /", "Rules of /t/", "Only at home."]


def test_a_pushed_home_source_without_the_folder_hides_nothing(workspace, agent, disk):
    home = add_pushed_source(workspace, "/t", {GLOBAL_SYSTEM: "Global.\n", "CLAUDE.md": "At home.\n"})
    project = add_source(workspace, disk, "/", "Project")
    choose(agent, (home, "home"), (project, "project"))
    assert read(agent)["context"] == ALL_RULES
    # In this folder the rule takes one file: that of the project, although the home directory has one too.
    push_and_refresh(home, {GLOBAL_SYSTEM: "Global.\n", "AGENTS.md": "Home rules.\n"})
    write(disk / "t/CLAUDE.md", "Project notes.\n")
    (disk / "t/AGENTS.md").unlink()
    refreshed(project)
    assert read(agent)["context"] == ["Rules of /", "Project notes.", "Rules of /t/proj/"]


def test_a_folder_in_two_projects_is_read_in_the_deeper_one(workspace, agent, disk):
    outer = add_source(workspace, disk, "/", "Outer")
    inner = add_pushed_source(workspace, "/t/proj", {"AGENTS.md": "Inner.\n"})
    for uses in ([outer, inner], [inner, outer]):
        choose(agent, *[(source, "project") for source in uses])
        texts = read(agent)
        assert set(texts["context"]) == {"Rules of /", "Rules of /t/", "Inner."}
        assert "base" not in texts


@pytest.mark.parametrize(("scopes"), [("project", "project"), ("both", "both"), ("both", "project")])
def test_of_two_sources_at_one_location_the_later_one_wins_and_each_file_is_read_once(
    workspace, agent, disk, scopes
):
    first = add_source(workspace, disk, "/t", "First")
    second = add_pushed_source(
        workspace, "/t", {"AGENTS.md": "Pushed rules.\n", "proj/CLAUDE.md": "Notes.\n"}
    )
    choose(agent, (first, scopes[0]), (second, scopes[1]))
    texts = read(agent)
    assert texts["context"] == ["Pushed rules.", "Rules of /t/proj/"]
    assert (texts["base"], PROJECT_SKILL in texts["skill"]) == (["System of /t/proj/"], True)
    choose(agent, (second, scopes[1]), (first, scopes[0]))
    assert read(agent)["context"] == ["Rules of /t/", "Rules of /t/proj/"]


def test_two_sources_on_one_folder_without_locations_give_each_file_once(workspace, agent, disk):
    first = make_source(workspace, disk / "t", "First")
    second = make_source(workspace, disk / "t", "Second")
    for source in (first, second):
        refresh_and_trust(source)
    for scopes in (("home", "project"), ("both", "both"), ("project", "both")):
        choose(agent, (first, scopes[0]), (second, scopes[1]), directory=str(disk / "t/proj"))
        agent.refresh_from_db()
        context = get_effective_context(agent)
        paths = [file.file.path for file in context.files if file.kind == "context"]
        assert paths == ["AGENTS.md", "proj/AGENTS.md"], scopes
        assert [file.text.strip() for file in context.files if file.kind == "base"] == ["System of /t/proj/"]
        skills = [skill.file.path for skill in context.skills if skill.file]
        assert len(skills) == len(set(skills))


@pytest.mark.parametrize(
    "scopes",
    [
        {"/": "home", "/t": "project", "/t/proj": "home"},
        {"/": "project", "/t": "home", "/t/proj": "project"},
        {"/": "project", "/t": "home", "/t/proj": "home"},
        {"/": "home", "/t": "home", "/t/proj": "project"},
        {"/": "both", "/t": "home", "/t/proj": "project"},
    ],
)
def test_three_levels_are_read_once_and_the_project_decides(workspace, agent, disk, scopes):
    sources = {location: add_source(workspace, disk, location) for location in scopes}
    homes_first = sorted(scopes, key=lambda location: scopes[location] != "home")
    choose(agent, *[(sources[location], scopes[location]) for location in homes_first])
    texts = read(agent)
    assert texts["base"] == ["System of /t/proj/"]
    assert set(texts["context"]) == set(ALL_RULES)
    assert PROJECT_SKILL in texts["skill"]


def test_an_extra_skill_folder_in_two_sources_is_read_once(workspace, agent, disk):
    write(disk / "t/extra/tea/SKILL.md", SKILL.format(name="tea", description="Makes tea."))
    home = add_source(workspace, disk, "/t", "Home")
    project = add_source(workspace, disk, "/", "Project")
    choose(agent, (home, "home"), (project, "project"), extra_skill_folders=["/t/extra"])
    for source in (home, project):
        refresh_and_trust(source)
    assert read(agent)["skill"].count("/t/extra/tea/SKILL.md") == 1


def test_a_bot_gets_the_system_prompt_of_the_project(workspace, agent, disk, alice, key_for):
    """Fault 2 of the review of use, as it was reported: by REST, and in the text of the prompt."""
    home, project = add_source(workspace, disk, "/t", "homet"), add_source(workspace, disk, "/", "rootp")
    admin = key_for(workspace, alice)
    sources = [{"source": home.slug, "scope": "home"}, {"source": project.slug, "scope": "project"}]
    body = {"harness": "pi", "sources": sources, "working_directory": "/t/proj"}
    chosen = admin.put("agents/pilot/context", body, admin.get("agents/pilot/context")["ETag"])
    assert chosen.status_code == 200, chosen.content
    [base] = [file for file in chosen.json()["files"] if file["kind"] == "base"]
    assert base["bot_path"] == "/t/proj/.sf/SYSTEM.md"


# --- planted faults ------------------------------------------------------------------------------------


@pytest.mark.planted
def test_a_home_source_that_takes_folders_of_a_project_is_detected(workspace, agent, disk, monkeypatch):
    monkeypatch.setattr(folders, "takes_folders", lambda use, other: True)
    with pytest.raises(AssertionError):
        test_a_home_source_never_hides_files_of_the_project(workspace, agent, disk, "/", "/t", True)


@pytest.mark.planted
def test_files_that_are_read_twice_are_detected(workspace, agent, disk, monkeypatch):
    monkeypatch.setattr(agent_search, "get_file_key", lambda source, path: f"{source.key}:{path}")
    with pytest.raises(AssertionError):
        test_a_home_source_never_hides_files_of_the_project(workspace, agent, disk, "/", "/t", True)
