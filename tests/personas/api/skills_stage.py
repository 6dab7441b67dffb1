"""What tests of skills, sources and files play with: true callers and a source that files are pushed to.

Its rows are made once for a module, beside those of `tests.shared_workspaces`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.test import Client

from personas.actors import Actor
from personas.api_keys.format import ADMIN, BOT
from personas.api_keys.services import create_key
from personas.models import Agent, User, Workspace
from skills.agent_context.services import choose_context
from skills.models import ContextFile, RefreshRun, Source
from skills.refresh.runs import claim_run
from skills.refresh.services import refresh_source
from skills.refresh.source_changes import add_source
from skills.uploads.services import push_file
from tests.api_client import Api
from tests.factories import BY, make_agent, refreshed
from tests.personas.api.response_checker import TrueApi
from tests.shared_workspaces import House
from tests.skills.files.file_samples import GOOD, POISON

SKILL_PATH = ".agents/skills/tea/SKILL.md"
SKILL_TEXT = "---\nname: tea\ndescription: Makes tea.\n---\n\nBoil water.\n"
HARNESS = "opal"


@pytest.fixture
def key_for(key_for: Callable[..., Api]) -> Callable[..., TrueApi]:
    """The usual callers, each answer held against the document."""

    def make(*args: Any, **scopes: Any) -> TrueApi:
        made = key_for(*args, **scopes)
        return TrueApi(made.secret, made.client)

    return make


@dataclass(frozen=True)
class Shelf:
    """Which rows there are for all tests of a module, and what opens them."""

    mira: int
    nils: int
    pushed: int
    foreign: int
    admin: str
    bot: str


@pytest.fixture(scope="module")
def shelf(house: House, django_db_blocker: Any) -> Shelf:
    """Two agents, a source without files, somebody else's source with some, and two keys of Alice."""
    with django_db_blocker.unblock():
        workspace = Workspace.objects.get(pk=house.workspace)
        by = Actor.person(User.objects.get(pk=house.alice))
        foreign = make_pushed(Workspace.objects.get(pk=house.elsewhere), "Foreign")
        look_at(foreign, {"AGENTS.md": POISON, SKILL_PATH: SKILL_TEXT})
        return Shelf(
            make_agent(workspace, "mira").pk,
            make_agent(workspace, "nils").pk,
            make_pushed(workspace).pk,
            foreign.pk,
            create_key(workspace, "Desk of all", {}, by=by, kind=ADMIN)[1],
            create_key(workspace, "Bot of all", {}, by=by, kind=BOT)[1],
        )


@pytest.fixture
def admin(shelf: Shelf, workspace: Workspace) -> TrueApi:
    return TrueApi(shelf.admin, Client(raise_request_exception=False))


@pytest.fixture
def bot(shelf: Shelf, workspace: Workspace) -> TrueApi:
    return TrueApi(shelf.bot, Client(raise_request_exception=False))


@pytest.fixture
def mira(shelf: Shelf, workspace: Workspace) -> Agent:
    return Agent.objects.in_workspace(workspace).get(pk=shelf.mira)


@pytest.fixture
def nils(shelf: Shelf, workspace: Workspace) -> Agent:
    return Agent.objects.in_workspace(workspace).get(pk=shelf.nils)


@pytest.fixture
def narrow_bot(key_for: Callable[..., TrueApi], workspace: Workspace, alice: User, mira: Agent) -> TrueApi:
    return key_for(workspace, alice, BOT, agents=["mira"])


@pytest.fixture
def narrow_admin(key_for: Callable[..., TrueApi], workspace: Workspace, alice: User, mira: Agent) -> TrueApi:
    return key_for(workspace, alice, agents=["mira"])


@pytest.fixture
def pushed(shelf: Shelf, workspace: Workspace) -> Source:
    return Source.objects.in_workspace(workspace).get(pk=shelf.pushed)


@pytest.fixture
def foreign(shelf: Shelf, elsewhere: Workspace) -> Source:
    """Somebody else's source with a file in it."""
    return Source.objects.in_workspace(elsewhere).get(pk=shelf.foreign)


def make_pushed(workspace: Workspace, label: str = "Pushed", **values: Any) -> Source:
    made, _ = add_source(workspace, {"label": label, "source_kind": "pushed"} | values, by=BY)
    refreshed(made)
    return made


def look_at(source: Source, files: dict[str, str]) -> None:
    """Push and look, as a worker would."""
    for path, text in files.items():
        run = push_file(source, path, text.encode(), by=BY)
    carried_out(run)


def carried_out(run: RefreshRun | int, workspace_id: int = 0) -> RefreshRun:
    number = run if isinstance(run, int) else run.pk
    claimed = claim_run(workspace_id or run.workspace_id, number)  # type: ignore[union-attr]  # one is given
    assert claimed is not None
    return refresh_source(claimed)


def reads(agent: Agent, source: Source) -> None:
    agent.refresh_from_db()
    choose_context(agent, source, HARNESS, working_directory="", expected=agent.revision, by=BY)


def file_in(source: Source, path: str = "AGENTS.md") -> ContextFile:
    return ContextFile.objects.in_workspace(source.workspace_id).get(source=source, path=path)


__all__ = ["GOOD", "POISON"]
