"""Fixtures of skills, sources and files: checked API clients and a source for pushed files.

The rows are created once per module, in addition to those of `tests.shared_cast`.
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
from tests.shared_cast import (  # noqa: F401  # fixtures
    SharedCast,
    shared_cast,
)
from tests.skills.files.file_samples import GOOD, POISON

SKILL_PATH = ".agents/skills/tea/SKILL.md"
SKILL_TEXT = "---\nname: tea\ndescription: Makes tea.\n---\n\nBoil water.\n"
HARNESS = "opal"


@pytest.fixture
def key_for(key_for: Callable[..., Api]) -> Callable[..., TrueApi]:
    """The usual API clients, with every response checked against the document."""

    def make(*args: Any, **scopes: Any) -> TrueApi:
        api = key_for(*args, **scopes)
        return TrueApi(api.secret, api.client)

    return make


@dataclass(frozen=True)
class SharedRows:
    """Ids of the rows shared by the tests of a module, and two secrets."""

    mira: int
    nils: int
    pushed: int
    foreign: int
    admin: str
    bot: str


@pytest.fixture(scope="module")
def shelf(cast: SharedCast, django_db_blocker: Any) -> SharedRows:
    """Create two agents, a source without files, another workspace's source with files, two keys of Alice."""
    with django_db_blocker.unblock():
        workspace = cast.workspace
        by = Actor.person(cast.alice)
        foreign = make_pushed(cast.elsewhere, "Foreign")
        push_and_refresh(foreign, {"AGENTS.md": POISON, SKILL_PATH: SKILL_TEXT})
        return SharedRows(
            make_agent(workspace, "mira").pk,
            make_agent(workspace, "nils").pk,
            make_pushed(workspace).pk,
            foreign.pk,
            create_key(workspace, "Desk of all", {}, by=by, kind=ADMIN)[1],
            create_key(workspace, "Bot of all", {}, by=by, kind=BOT)[1],
        )


@pytest.fixture
def admin(shelf: SharedRows, workspace: Workspace) -> TrueApi:
    return TrueApi(shelf.admin, Client(raise_request_exception=False))


@pytest.fixture
def bot(shelf: SharedRows, workspace: Workspace) -> TrueApi:
    return TrueApi(shelf.bot, Client(raise_request_exception=False))


@pytest.fixture
def mira(shelf: SharedRows, workspace: Workspace) -> Agent:
    return Agent.objects.in_workspace(workspace).get(pk=shelf.mira)


@pytest.fixture
def nils(shelf: SharedRows, workspace: Workspace) -> Agent:
    return Agent.objects.in_workspace(workspace).get(pk=shelf.nils)


@pytest.fixture
def narrow_bot(key_for: Callable[..., TrueApi], workspace: Workspace, alice: User, mira: Agent) -> TrueApi:
    return key_for(workspace, alice, BOT, agents=["mira"])


@pytest.fixture
def narrow_admin(key_for: Callable[..., TrueApi], workspace: Workspace, alice: User, mira: Agent) -> TrueApi:
    return key_for(workspace, alice, agents=["mira"])


@pytest.fixture
def pushed(shelf: SharedRows, workspace: Workspace) -> Source:
    return Source.objects.in_workspace(workspace).get(pk=shelf.pushed)


@pytest.fixture
def foreign(shelf: SharedRows, elsewhere: Workspace) -> Source:
    """A source of another workspace with a file in it."""
    return Source.objects.in_workspace(elsewhere).get(pk=shelf.foreign)


def make_pushed(workspace: Workspace, name: str = "Pushed", **values: Any) -> Source:
    defaults = {"name": name, "source_kind": "pushed", "approval": "automatic"}
    source, _ = add_source(workspace, defaults | values, by=BY)
    refreshed(source)
    return source


def push_and_refresh(source: Source, files: dict[str, str]) -> None:
    """Push files and refresh the source, as a worker would."""
    for path, text in files.items():
        run = push_file(source, path, text.encode(), by=BY)
    run_refresh(run)


def run_refresh(run: RefreshRun | int, workspace_id: int = 0) -> RefreshRun:
    number = run if isinstance(run, int) else run.pk
    claimed = claim_run(workspace_id or run.workspace_id, number)  # type: ignore[union-attr]  # one is given
    assert claimed is not None
    return refresh_source(claimed)


def read_source(agent: Agent, source: Source) -> None:
    agent.refresh_from_db()
    choose_context(agent, source, HARNESS, working_directory="", expected=agent.revision, by=BY)


def file_in(source: Source, path: str = "AGENTS.md") -> ContextFile:
    return ContextFile.objects.in_workspace(source.workspace_id).get(source=source, path=path)


__all__ = ["GOOD", "POISON"]
