"""Every caller of the function that moves a label goes through the review step.

The callers are found in the source. Pages reach them only through the middleware, which runs every action
as its view declares; the other entrances are listed with the reason why nobody can be asked.
"""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.urls import resolve
from django.utils.module_loading import import_string

from personas.models import MemoryStatus
from personas.records.services import edit_record
from personas.ui.review import Automatic, NotReviewed, ReviewDeclaration, Reviewed
from prompts.models import AgentPrompt
from prompts.publishing.labels.change_recorder import UnreviewedChange
from prompts.publishing.review.middleware import run_review_step
from tests.factories import BY, make_memory
from tests.isolation.walk import all_routes
from tests.prompts.publishing.review.test_review_step import editor, get_production, pilot, soul  # noqa: F401  # fixtures

ROOT = Path(__file__).parents[4]
MOVER = "prompts.publishing.labels.moves.move_labels"
# The functions that call `move_labels`, directly or through `apply_label_moves`.
CALLERS = {
    "prompts.publishing.builds.publish.advance_production",
    "prompts.evidence.erasure.label_moves.move_labels_off_erased",
    "prompts.publishing.labels.services.apply_label_moves",
    "prompts.publishing.labels.services.move_label",
    "prompts.publishing.labels.services.remove_label",
    "prompts.publishing.labels.services.roll_back",
    "prompts.publishing.labels.services.unpin_production",
    "prompts.publishing.releases.services.move_release_labels",
}
# Where nobody can be asked: the caller of the API sees the impact with its own operations before, and workers
# finish what a page or the API has started, or follow a setting that a member has turned on.
OTHER_ENTRANCES = {
    "api": "keys; POST /drafts:impact and If-Match",
    "tasks": "jobs",
    "receivers": "builds of changes that pages, API and jobs have made",
    "management": "commands of operators",
    "demo": "records of the demo",
}


def list_calls(source: str) -> Iterator[tuple[str, str]]:
    """Yield function and called name, for all calls in the functions of a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Call):
                    name = (
                        inner.func.id if isinstance(inner.func, ast.Name) else getattr(inner.func, "attr", "")
                    )
                    yield node.name, name


def find_callers(sources: dict[str, str]) -> set[str]:
    return {
        f"{module}.{function}"
        for module, source in sources.items()
        for function, called in list_calls(source)
        if called in {"move_labels", "apply_label_moves"}
    }


def read_sources() -> dict[str, str]:
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path.read_text()
        for folder in ("core", "personas", "skills", "prompts", "project")
        for path in (ROOT / folder).rglob("*.py")
        if "migrations" not in path.parts
    }


def list_action_views() -> dict[str, Any]:
    """Return the views of a workspace that accept POST, by the name of their route."""
    return {
        route.name: route.view for route in all_routes() if route.is_inside and hasattr(route.view, "needs")
    }


def find_undeclared(views: dict[str, Any]) -> list[str]:
    return [
        name
        for name, view in views.items()
        if not isinstance(getattr(view, "review", None), ReviewDeclaration)
    ]


def find_lost_uploads(views: dict[str, Any]) -> list[str]:
    """Return the reviewed views that read a file, and do not declare which field can have its text."""
    return [
        name
        for name, view in views.items()
        if isinstance(view.review, Reviewed)
        and not view.review.uploads
        and "request.FILES" in inspect.getsource(inspect.unwrap(view))
    ]


def test_every_caller_of_the_function_that_moves_labels_is_known():
    assert find_callers(read_sources()) == CALLERS


def test_a_planted_caller_is_found():
    planted = "def promote(prompt):\n    moves.move_labels(prompt.workspace_id, [prompt], at=None)\n"
    found = find_callers(read_sources() | {"prompts.studio.fleet.views": planted})
    assert found - CALLERS == {"prompts.studio.fleet.views.promote"}


def test_the_function_reports_to_the_review_and_nothing_else_writes_labels():
    sources = read_sources()
    calls = set(list_calls(sources["prompts.publishing.labels.moves"]))
    assert {("move_labels", "record_label_moves"), ("move_labels", "check_moves")} <= calls
    writers = {
        module
        for module, source in sources.items()
        if "PromptLabel.objects.insert" in source
        or "PromptLabel(" in source.replace("class PromptLabel(", "")
    }
    assert writers == {"prompts.publishing.labels.moves"}


def test_the_middleware_runs_all_pages_and_comes_last():
    assert settings.MIDDLEWARE[-1] == "prompts.publishing.review.middleware.ReviewMiddleware"
    assert import_string(settings.REVIEW_STEP) is run_review_step


def test_every_page_that_accepts_post_declares_its_review(monkeypatch):
    views = list_action_views()
    assert len(views) > 100
    assert find_undeclared(views) == []
    monkeypatch.delattr(views["souls:edit"], "review")
    assert find_undeclared(views) == ["souls:edit"]


def test_an_upload_is_sent_again_after_the_review(monkeypatch):
    views = list_action_views()
    assert find_lost_uploads(views) == []
    monkeypatch.setattr(views["memories:import"].__func__, "review", Reviewed())
    assert find_lost_uploads(views) == ["memories:import"]


def test_only_these_actions_change_prompts_without_a_review():
    views = list_action_views().items()
    assert {name for name, view in views if isinstance(view.review, Automatic)} == {
        "sources:refresh",
        "sources:upload",
        "sources:confirm-removal",
        "builds:everything",
        "fleet:demo",
    }


@pytest.mark.parametrize(
    "name",
    [
        "studio:review",
        "agents:edit",
        "souls:edit",
        "souls:revert",
        "memories:approve",
        "memories:decide",
        "files:approve",
        "inbox:approve-selected",
        "prompt-settings:workspace",
        "erasures:erase",
        "versions:roll-back",
        "versions:unpin",
        "versions:label",
        "fleet:bulk",
        "skills:trust-policy",
        "files:waive",
        "releases:publish",
        "releases:override",
        "responsibilities:order",
        "agent-context:choose",
    ],
)
def test_an_action_that_can_move_production_is_reviewed(name):
    assert isinstance(list_action_views()[name].review, Reviewed)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("policy", ["automatic", "reviewed"])
def test_a_view_that_writes_records_and_declares_otherwise_fails(
    editor,  # noqa: F811
    workspace,
    pilot,  # noqa: F811
    policy,
    monkeypatch,
):
    """Also if production waits for an approval, so that only a new version is built."""
    edit_record(pilot, {"release_policy": policy}, expected=pilot.revision, by=BY)
    memory = make_memory(workspace, text="The reef moved.", status=MemoryStatus.PROPOSED, agent=pilot)
    path = f"/w/{workspace.slug}/memories/{memory.pk}/approve/"
    monkeypatch.setattr(resolve(path).func, "review", NotReviewed("planted"))
    with pytest.raises(UnreviewedChange, match=r"MemoryPages\.approve writes a Memory"):
        editor.post(path)
    memory.refresh_from_db()
    assert memory.status == MemoryStatus.PROPOSED
    assert "The reef moved." not in get_production(pilot)


@pytest.mark.django_db(transaction=True)
def test_a_view_that_moves_production_and_declares_otherwise_fails(editor, workspace, pilot, monkeypatch):  # noqa: F811
    prompt = AgentPrompt.unscoped.get(agent=pilot, channel__slug="deck")
    path = f"/w/{workspace.slug}/prompts/{prompt.pk}/roll-back/"
    monkeypatch.setattr(resolve(path).func, "review", NotReviewed("planted"))
    with pytest.raises(UnreviewedChange, match="roll_back_view moves production"):
        editor.post(path, {"note": "Too calm."})
    assert "Be calm." in get_production(pilot)


@pytest.mark.django_db(transaction=True)
def test_a_view_without_a_declaration_is_reviewed(editor, workspace, pilot, monkeypatch):  # noqa: F811
    memory = make_memory(workspace, text="The reef moved.", status=MemoryStatus.PROPOSED, agent=pilot)
    path = f"/w/{workspace.slug}/memories/{memory.pk}/approve/"
    monkeypatch.delattr(resolve(path).func, "review")
    assert editor.post(path)["Dramatis-Review"] == "required"
    assert "The reef moved." not in get_production(pilot)


def test_the_other_entrances_exist():
    modules = read_sources()
    for name in OTHER_ENTRANCES:
        assert any(name in module.split(".") for module in modules)
