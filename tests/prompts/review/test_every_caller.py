"""Every caller of the function that moves a label goes through the review step.

The callers are found in the source. Pages reach them only through the middleware, which runs every action
with the review; the other entrances are listed with the reason why nobody can be asked.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.urls import URLResolver, get_resolver

from personas.models import MemoryStatus
from personas.tenancy.middleware import VIEW_RUNNERS
from prompts.labels.change_recorder import UnreviewedChange
from prompts.review import middleware
from prompts.review.middleware import (
    AUTOMATIC_VIEWS,
    EXEMPT_NAMESPACES,
    EXEMPT_VIEWS,
    is_exempt,
    run_reviewed_view,
)
from tests.factories import make_memory
from tests.prompts.review.test_review_step import editor, get_production, pilot, soul  # noqa: F401  # fixtures

ROOT = Path(__file__).parents[3]
MOVER = "prompts.labels.moves.move_labels"
# The functions that call `move_labels`, directly or through `apply_label_moves`.
CALLERS = {
    "prompts.builds.publish.advance_production",
    "prompts.erasure.label_moves.move_labels_off_erased",
    "prompts.labels.services.apply_label_moves",
    "prompts.labels.services.move_label",
    "prompts.labels.services.remove_label",
    "prompts.labels.services.roll_back",
    "prompts.labels.services.unpin_production",
    "prompts.releases.services.move_release_labels",
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


def list_page_routes(resolver: URLResolver, prefix: str = "", namespace: str = "") -> Iterator[str]:
    """Yield the names of all pages of a workspace."""
    for entry in resolver.url_patterns:
        route = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from list_page_routes(
                entry, route, f"{namespace}{entry.namespace}:" if entry.namespace else namespace
            )
        elif "<slug:workspace>" in route:
            yield f"{namespace}{entry.name}"


def test_every_caller_of_the_function_that_moves_labels_is_known():
    assert find_callers(read_sources()) == CALLERS


def test_a_planted_caller_is_found():
    planted = "def promote(prompt):\n    moves.move_labels(prompt.workspace_id, [prompt], at=None)\n"
    found = find_callers(read_sources() | {"prompts.fleet.views": planted})
    assert found - CALLERS == {"prompts.fleet.views.promote"}


def test_the_function_reports_to_the_review_and_nothing_else_writes_labels():
    sources = read_sources()
    calls = set(list_calls(sources["prompts.labels.moves"]))
    assert {("move_labels", "record_label_moves"), ("move_labels", "check_moves")} <= calls
    writers = {
        module
        for module, source in sources.items()
        if "PromptLabel.objects.insert" in source
        or "PromptLabel(" in source.replace("class PromptLabel(", "")
    }
    assert writers == {"prompts.labels.moves"}


def test_the_middleware_runs_all_pages_and_comes_last():
    assert settings.MIDDLEWARE[-1] == "prompts.review.middleware.ReviewMiddleware"
    assert run_reviewed_view in VIEW_RUNNERS


def test_exemptions_name_pages_that_exist():
    names = set(list_page_routes(get_resolver()))
    assert len(names) > 100
    assert {*EXEMPT_VIEWS, *AUTOMATIC_VIEWS} <= names
    assert set(EXEMPT_NAMESPACES) <= {name.partition(":")[0] for name in names}


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
def test_an_action_that_can_move_production_has_no_exemption(name):
    assert name in set(list_page_routes(get_resolver()))
    assert not is_exempt(name)
    assert name not in AUTOMATIC_VIEWS


@pytest.mark.django_db(transaction=True)
def test_a_planted_exemption_fails_instead_of_moving_production(editor, workspace, pilot, monkeypatch):  # noqa: F811
    memory = make_memory(workspace, text="The reef moved.", status=MemoryStatus.PROPOSED, agent=pilot)
    monkeypatch.setitem(middleware.EXEMPT_VIEWS, "memories:approve", "planted")
    with pytest.raises(UnreviewedChange, match="memories:approve moves production"):
        editor.post(f"/w/{workspace.slug}/memories/{memory.pk}/approve/")
    assert "The reef moved." not in get_production(pilot)


def test_the_other_entrances_exist():
    modules = read_sources()
    for name in OTHER_ENTRANCES:
        assert any(name in module.split(".") for module in modules)
