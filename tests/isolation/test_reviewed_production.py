"""No action puts text into production of a reviewed agent that nobody approved.

Every page that accepts POST and every API operation that writes is called as an owner, while the agent of
the seeded workspace is reviewed and has a version that was not approved. The tables of the isolation matrix
are the registry: a route or operation without a row fails their own tests.
"""

import ast
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from personas.actors import Actor
from personas.models import Agent
from personas.records.services import edit_record
from prompts.evidence.erasure import label_moves
from prompts.models import PRODUCTION, AgentPrompt, LabelMove, MoveReason, PromptLabel, PromptVersion, Release
from prompts.publishing.builds import publish
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.labels.moves import move_labels
from prompts.publishing.labels.planned_moves import PlannedMove
from prompts.publishing.versions.selectors import get_version_text
from tests.isolation.api_cast import before, callers, known_callers, rolled_back_as_test  # noqa: F401  # fixtures
from tests.isolation.api_matrix import OWN, WRITES, send_cell
from tests.isolation.api_matrix import Cell as ApiCell
from tests.isolation.api_table import known_endpoints
from tests.isolation.cast import HARBOUR, Stage
from tests.isolation.expectations import INSIDE
from tests.isolation.matrix import Cell, address, inside_routes
from tests.isolation.probe import quick_templates, send_request
from tests.isolation.turns import turn_of_this_run
from tests.module_fixtures import commits_heard

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).parents[2]
# The only actions that may release the pending version. They require a reason, which the audit log shows.
OVERRIDES = {"POST releases-override", "releases:override"}
# The functions that move labels, each with the actions above that call it.
MOVERS = {
    "prompts.publishing.builds.publish.advance_production": {"POST prompts-rebuild", "PATCH souls-one"},
    "prompts.publishing.labels.services.move_label": {"PUT labels-one", "versions:label"},
    "prompts.publishing.labels.services.remove_label": {"DELETE labels-one", "versions:remove-label"},
    "prompts.publishing.labels.services.roll_back": {"POST labels-roll-back", "versions:roll-back"},
    "prompts.publishing.labels.services.unpin_production": {"POST labels-unpin", "versions:unpin"},
    "prompts.publishing.releases.services.move_release_labels": {"POST releases-publish", "releases:publish"},
    "prompts.evidence.erasure.label_moves.move_labels_off_erased": {"POST erasures-list", "erasures:erase"},
}


class ReviewedAgent:
    """The seeded agent, made reviewed: production is at an approved version, and the latest is pending."""

    def __init__(self, stage: Stage) -> None:
        self.workspace = stage.workspaces[HARBOUR]
        self.prompt: AgentPrompt = stage.row(HARBOUR, "prompts")
        agent, by = Agent.unscoped.get(pk=self.prompt.agent_id), Actor(label="seeds")
        AgentPrompt.unscoped.filter(pk=self.prompt.pk).update(is_pinned=False)
        # Production contains the current records, so that an erasure has something to erase.
        rebuild_agents(self.workspace, [agent.pk])
        agent = edit_record(agent, {"release_policy": "reviewed"}, expected=agent.revision, by=by)
        approved = self.latest
        self.approved_lines = set(get_version_text(approved).splitlines())
        moves = LabelMove.unscoped.filter(prompt=self.prompt, label=PRODUCTION)
        self.approved = set(moves.values_list("version_id", flat=True))
        assert approved.pk in self.approved
        pending = {"instructions": "Text that nobody approved."}
        edit_record(agent, pending, expected=agent.revision, by=by)
        rebuild_agents(self.workspace, [agent.pk])
        assert not self.find_problem()
        Release.unscoped.filter(workspace=self.workspace).update(label=PRODUCTION)
        for item in stage.row(HARBOUR, "releases").items.all():
            item.version, item.digest = self.latest, self.latest.digest
            item.save()

    @property
    def latest(self) -> PromptVersion:
        return PromptVersion.unscoped.filter(prompt=self.prompt).order_by("-number")[0]

    def find_problem(self) -> str:
        """Return what is wrong with production; empty if only approved text is served."""
        label = (
            PromptLabel.unscoped.filter(prompt=self.prompt, name=PRODUCTION).select_related("version").first()
        )
        if label is None:
            return "production was removed"
        if label.version_id in self.approved:
            return ""
        new = set(get_version_text(label.version).splitlines()) - self.approved_lines
        return f"production is at version {label.version.number} with {sorted(new)[:3]}" if new else ""


@pytest.fixture
def reviewed(stage: Stage) -> ReviewedAgent:
    return ReviewedAgent(stage)


Action = tuple[str, Callable[[], Any]]


def list_actions(stage: Stage, keys: dict[str, Any]) -> Iterator[Action]:
    """Yield every writing operation and page with its example from the isolation tables."""
    requester = stage.requesters["owner"]
    for endpoint in known_endpoints():
        if endpoint.method in WRITES:
            key = keys["overriding owner" if endpoint.name == "releases-override" else "owner"]
            cell = ApiCell(key, endpoint, OWN)
            yield str(endpoint), partial(send_cell, stage, cell)
    for route in inside_routes():
        page = INSIDE[route.name]
        if page.write is not None:
            path = address(stage, Cell(requester, route, "POST", "own"))
            body = page.body(stage, HARBOUR)
            yield route.name, partial(send_request, requester, "POST", path, body)


def run_actions(
    stage: Stage, keys: dict[str, Any], reviewed: ReviewedAgent, only: set[str] | None = None
) -> tuple[dict[str, str], set[str]]:
    """Run the actions, each from the same state.

    Return the problems by action, and the actions that built a version.
    """
    problems, built, latest = {}, set(), reviewed.latest.pk
    with quick_templates():
        for name, act in list_actions(stage, keys):
            if only is not None and name not in only:
                continue
            with rolled_back_as_test(), commits_heard():
                act()
                if problem := reviewed.find_problem():
                    problems[name] = problem
                if reviewed.latest.pk != latest:
                    built.add(name)
    return problems, built


@pytest.mark.hard
def test_no_action_serves_text_that_was_not_approved(stage, callers, reviewed):  # noqa: F811
    problems, built = run_actions(stage, callers, reviewed)
    assert set(problems) == OVERRIDES, problems
    # The actions do change the prompt: without the review they would have changed production.
    assert len(built) >= 20, sorted(built)
    assert {"PATCH souls-one", "POST agents-restore-revision", "agents:revert", "erasures:erase"} <= built


@pytest.mark.slow
def test_no_action_of_this_run_serves_text_that_was_not_approved(stage, callers, reviewed):  # noqa: F811
    """A sixth of the actions by seed, and all that move labels or restore an agent."""
    turn = turn_of_this_run()
    sample = {
        name for number, (name, _act) in enumerate(list_actions(stage, callers)) if number % 6 == turn % 6
    }
    always = {"POST agents-restore-revision", "agents:revert", *OVERRIDES}.union(*MOVERS.values())
    assert set(run_actions(stage, callers, reviewed, sample | always)[0]) == OVERRIDES


@pytest.mark.slow
def test_every_function_that_moves_labels_is_among_the_actions(stage, callers):  # noqa: F811
    names = {name for name, _act in list_actions(stage, callers)}
    assert find_movers() == set(MOVERS)
    assert set().union(*MOVERS.values()) <= names


def find_movers() -> set[str]:
    """Return the functions of the product that plan a label move."""
    movers = set()
    for path in ROOT.glob("prompts/**/*.py"):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for node in ast.parse(path.read_text()).body:
            called = {
                inner.func.id
                for inner in ast.walk(node)
                if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name)
            }
            if isinstance(node, ast.FunctionDef) and called & {"move_labels", "apply_label_moves"}:
                movers.add(f"{module}.{node.name}")
    return movers - {"prompts.publishing.labels.services.apply_label_moves"}


def test_only_the_function_with_the_check_writes_labels():
    writers = {
        str(path.relative_to(ROOT))
        for folder in ("core", "personas", "skills", "prompts", "project")
        for path in (ROOT / folder).rglob("*.py")
        if "migrations" not in path.parts
        and any(
            f"PromptLabel{text}" in path.read_text()
            for text in ("(\n", "(workspace", "(prompt", ".objects.create", ".unscoped")
        )
    }
    assert writers <= {"prompts/publishing/labels/moves.py", "prompts/publishing/labels/models.py"}


# --- planted faults ------------------------------------------------------------------------------------


def advance_regardless_of_policy(workspace: Any, versions: Any, at: Any, known: Any) -> None:
    moves = [PlannedMove(one.prompt, PRODUCTION, one, MoveReason.BUILD, by="fault") for one in versions]
    move_labels(workspace, moves, at=at, batch=known.batch)


def test_a_build_that_ignores_the_policy_is_found(stage, callers, reviewed, monkeypatch):  # noqa: F811
    actions = {"PATCH souls-one", "POST memories-list"}
    monkeypatch.setattr(publish, "advance_production", advance_regardless_of_policy)
    # The check of moves refuses it, so production keeps its text …
    assert run_actions(stage, callers, reviewed, actions)[0] == {}
    # … and without the check, the test finds it.
    monkeypatch.setattr("prompts.publishing.labels.moves.check_moves", lambda *args: None)
    assert set(run_actions(stage, callers, reviewed, actions)[0]) == actions


@pytest.mark.slow
def test_an_erasure_to_the_latest_version_is_found(stage, callers, reviewed, monkeypatch):  # noqa: F811
    actions = {"POST erasures-list", "erasures:erase"}
    monkeypatch.setattr(label_moves, "is_governed", lambda label, protected: False)
    assert run_actions(stage, callers, reviewed, actions)[0] == {}
    monkeypatch.setattr("prompts.publishing.labels.moves.check_moves", lambda *args: None)
    assert set(run_actions(stage, callers, reviewed, actions)[0]) == actions
