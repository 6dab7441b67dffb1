"""Managers and writes of tenant models within the scope of one workspace, and compiled queries."""

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.test.utils import CaptureQueriesContext

from core.db import compiled_query
from core.db.compiled_query import CompiledQuery
from core.db.compiled_write import WriteBatch
from core.db.workspace_scope import all_workspaces, no_workspace, use_scope, workspace_scope
from personas.models import Agent, CrossWorkspaceLink, Soul, Task, TaskStep
from personas.tenancy.middleware import list_memberships
from tests.factories import join, make_agent, make_soul, make_task

pytestmark = pytest.mark.django_db


@pytest.fixture
def agents(workspace, elsewhere) -> tuple[Agent, Agent]:
    return make_agent(workspace, "pilot"), make_agent(elsewhere, "spy")


def test_a_scope_of_one_workspace_limits_the_default_and_the_base_manager(workspace, elsewhere, agents):
    for manager in (Agent.unscoped, Agent._base_manager, Agent._default_manager):
        with workspace_scope(workspace.pk):
            assert list(manager.all()) == [agents[0]]
        with workspace_scope(elsewhere.pk):
            assert list(manager.all()) == [agents[1]]
        for scope in (all_workspaces, no_workspace):
            with scope():
                assert manager.count() == 2


def test_the_workspace_of_in_workspace_is_named_once(workspace):
    with workspace_scope(workspace.pk):
        sql = str(Agent.objects.in_workspace(workspace).query)
    assert sql.count('"workspace_id" = ') == 1


def test_memberships_are_listed_in_every_scope(workspace, elsewhere, alice):
    join(elsewhere, alice)
    with workspace_scope(workspace.pk):
        assert {member.workspace for member in list_memberships(alice)} == {workspace, elsewhere}


def list_updates(log: CaptureQueriesContext) -> list[str]:
    return [query["sql"] for query in log if query["sql"].startswith("UPDATE")]


@pytest.mark.parametrize("is_scoped", [False, True])
def test_saving_names_the_workspace_and_never_sets_it(workspace, agents, is_scoped):
    pilot = Agent.objects.in_workspace(workspace).get(slug="pilot")
    with CaptureQueriesContext(connection) as log, use_scope(str(workspace.pk) if is_scoped else "all"):
        pilot.name = "Pilot"
        pilot.save()
        pilot.save(update_fields=["name"])
        batch = WriteBatch()
        batch.update(pilot)
        batch.send()
    updates = list_updates(log)
    assert len(updates) == 3
    for sql in updates:
        changes, _, condition = sql.partition(" WHERE ")
        assert "workspace_id" not in changes
        assert condition.count(f'"workspace_id" = {workspace.pk}') == 1


def test_links_into_another_workspace_are_refused_in_every_scope(workspace, elsewhere, agents):
    foreign = make_soul(elsewhere)
    for scope in (str(workspace.pk), "all"):
        pilot = Agent.objects.in_workspace(workspace).get(slug="pilot")
        pilot.soul_id = foreign.pk
        with use_scope(scope), pytest.raises(CrossWorkspaceLink):
            pilot.save()


def test_uniqueness_checks_name_the_workspace(workspace):
    task = make_task(workspace, steps=[{"title": "One"}])
    step = TaskStep(workspace=workspace, task=task, position=7, title="Two")
    with CaptureQueriesContext(connection) as log, workspace_scope(workspace.pk):
        step.full_clean()
    statements = [query["sql"] for query in log]
    assert statements
    assert all(f'"workspace_id" = {workspace.pk}' in sql for sql in statements)
    assert Task.objects.in_workspace(workspace).count() == 1


# --- compiled queries ----------------------------------------------------------------------------------


def list_agents_with_soul(workspace: int, name: str) -> QuerySet[Agent]:
    """Use the unscoped manager, which filters by the scope in which it is called."""
    souls = Soul.unscoped.filter(workspace=workspace, name=name)
    return Agent.unscoped.filter(workspace=workspace, soul__in=souls).prefetch_related("soul")


def fetch_in_both(workspace, elsewhere) -> list[list[str]]:
    """Compile a query in the scope of one workspace, and use it in that of another."""
    make_agent(workspace, "pilot", soul=make_soul(workspace, name="Calm"))
    make_agent(elsewhere, "spy", soul=make_soul(elsewhere, name="Calm"))
    query = CompiledQuery(list_agents_with_soul)
    found = []
    for one in (workspace, elsewhere):
        with workspace_scope(one.pk):
            found.append([agent.slug for agent in query(one.pk, "Calm") if agent.soul])
    return found


def test_a_query_compiled_in_one_workspace_is_used_in_another(workspace, elsewhere):
    assert fetch_in_both(workspace, elsewhere) == [["pilot"], ["spy"]]


@pytest.mark.planted
def test_a_scope_that_is_compiled_into_a_query_is_found(workspace, elsewhere, monkeypatch):
    monkeypatch.setattr(compiled_query, "all_workspaces", lambda: workspace_scope(workspace.pk))
    assert fetch_in_both(workspace, elsewhere) == [["pilot"], []]
