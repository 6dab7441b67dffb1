"""Queries along foreign keys between tenant models name the workspace on both sides."""

from typing import Any

import pytest
from django.apps import apps
from django.db import connection, models
from django.db.models import Count, Exists, OuterRef, Q
from django.test.utils import CaptureQueriesContext

from core.db.workspace_scope import workspace_scope
from personas.models import Agent, AgentTool, Soul, Task, Tool, WorkspaceOwned
from personas.tenancy.fields import TenantForeignKey, TenantLink, TenantOneToOneField
from skills.models import AgentContext
from tests.factories import make_agent, make_soul, make_task, make_tool

pytestmark = pytest.mark.django_db


def list_links() -> "list[models.ForeignKey[Any, Any]]":
    return [
        field
        for model in apps.get_models()
        for field in model._meta.local_fields
        if isinstance(field, models.ForeignKey)
    ]


def is_between_tenants(field: "models.ForeignKey[Any, Any]") -> bool:
    return issubclass(field.model, WorkspaceOwned) and issubclass(field.remote_field.model, WorkspaceOwned)


def test_every_foreign_key_between_tenant_models_compares_the_workspace():
    links = list_links()
    assert len([field for field in links if is_between_tenants(field)]) > 60
    assert not [str(field) for field in links if isinstance(field, TenantLink) != is_between_tenants(field)]
    # A many-to-many field would have a table without a workspace.
    assert not [
        model for model in apps.get_models() if issubclass(model, WorkspaceOwned) and model._meta.many_to_many
    ]


def test_migrations_contain_foreign_keys_of_django():
    for field, path in (
        (Agent._meta.get_field("soul"), "django.db.models.ForeignKey"),
        (AgentContext._meta.get_field("agent"), "django.db.models.OneToOneField"),
    ):
        assert isinstance(field, TenantForeignKey | TenantOneToOneField)
        assert field.deconstruct()[1] == path


@pytest.fixture
def crew(workspace, elsewhere) -> list[Agent]:
    soul = make_soul(workspace, name="Calm")
    make_agent(elsewhere, "spy", soul=make_soul(elsewhere, name="Quiet"))
    return [
        make_agent(workspace, "pilot", soul=soul, tools=[make_tool(workspace, "radio")]),
        make_agent(workspace, "cook", soul=soul),
        make_agent(workspace, "guard"),
    ]


def count_workspaces(rows: "models.QuerySet[Any, Any]") -> int:
    """Return how many joins compare the workspaces of two tables."""
    return str(rows.query).count('"workspace_id" = "')


def test_joins_compare_the_workspace(workspace, crew):
    agents = Agent.objects.in_workspace(workspace).order_by("slug")
    joined = agents.select_related("soul", "identity")
    assert count_workspaces(joined) == 2
    assert [agent.soul and agent.soul.name for agent in joined] == ["Calm", None, "Calm"]
    assert count_workspaces(agents.filter(tool_links__tool__name="radio")) == 2
    assert list(agents.filter(tool_links__tool__name="radio")) == [crew[0]]
    souls = Soul.objects.in_workspace(workspace).annotate(
        count=Count("agents", filter=Q(agents__archived_at=None))
    )
    assert count_workspaces(souls) == 1
    assert [soul.count for soul in souls] == [2]
    links = AgentTool.objects.in_workspace(workspace).filter(agent=OuterRef("pk"), tool__name="radio")
    assert list(agents.filter(Exists(links))) == [crew[0]]
    assert agents.filter(soul__agents__slug="cook").count() == 2


def test_rows_of_another_workspace_are_not_joined(workspace, elsewhere, crew):
    """A link into another workspace cannot be saved. If the database had one, no query would follow it."""
    foreign = Soul.objects.in_workspace(elsewhere).get()
    Agent.unscoped.filter(pk=crew[2].pk).update(soul=None)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE personas_agent SET soul_id = %s WHERE id = %s", [foreign.pk, crew[2].pk])
    guard = Agent.objects.in_workspace(workspace).select_related("soul").get(slug="guard")
    assert guard.soul is None
    assert not Agent.objects.in_workspace(workspace).filter(soul__name="Quiet").exists()
    guard = Agent.objects.in_workspace(workspace).get(slug="guard")
    with pytest.raises(Soul.DoesNotExist):
        _ = guard.soul
    assert [agent.slug for agent in foreign.agents.all()] == ["spy"]
    prefetched = Soul.objects.in_workspace(elsewhere).prefetch_related("agents").get()
    assert [agent.slug for agent in prefetched.agents.all()] == ["spy"]


def list_statements(log: CaptureQueriesContext) -> list[str]:
    return [query["sql"] for query in log if "FROM" in query["sql"]]


@pytest.mark.parametrize("is_scoped", [False, True])
def test_relations_name_the_workspace_once(workspace, crew, is_scoped):
    pilot = Agent.objects.in_workspace(workspace).get(slug="pilot")
    task = make_task(workspace, agent=pilot)
    condition = f'"workspace_id" = {workspace.pk}'

    def follow() -> None:
        assert pilot.soul is not None
        assert [link.tool_id for link in pilot.tool_links.all()] == [Tool.unscoped.get(name="radio").pk]
        assert not hasattr(pilot, "context")
        assert pilot.tasks.get() == task
        pilot.tasks.filter(pk=task.pk).update(title="New")
        pilot.refresh_from_db()

    with CaptureQueriesContext(connection) as log:
        if is_scoped:
            with workspace_scope(workspace.pk):
                follow()
        else:
            follow()
    statements = [sql for sql in list_statements(log) if is_scoped or '"name" = ' not in sql]
    # Outside of a scope, refresh_from_db has nothing but the id.
    named = statements if is_scoped else statements[:-1]
    assert len(named) >= 4
    assert [sql.count(condition) for sql in named] == [1] * len(named)


def test_prefetches_over_several_workspaces(workspace, elsewhere, crew):
    souls = Soul.unscoped.filter(workspace__in=[workspace, elsewhere]).order_by("name")
    with CaptureQueriesContext(connection) as log:
        found = {
            soul.name: [agent.slug for agent in soul.agents.all()]
            for soul in souls.prefetch_related("agents")
        }
        agents = Agent.unscoped.order_by("slug").prefetch_related("soul")
        labels = [agent.soul.name for agent in agents if agent.soul]
    assert {label: sorted(slugs) for label, slugs in found.items()} == {
        "Calm": ["cook", "pilot"],
        "Quiet": ["spy"],
    }
    assert labels == ["Calm", "Calm", "Quiet"]
    assert len(log) == 4
    assert all('"workspace_id" IN (' in query["sql"] for query in (log[1], log[3]))


def test_deleting_a_row_deletes_its_children_of_the_workspace(workspace, elsewhere):
    task = make_task(workspace, steps=[{"title": "One"}, {"title": "Two"}])
    other = make_task(elsewhere, steps=[{"title": "Three"}])
    with CaptureQueriesContext(connection) as log:
        task.delete()
    deletes = [query["sql"] for query in log if query["sql"].startswith("DELETE")]
    assert deletes
    assert all(f'"workspace_id" = {workspace.pk}' in sql for sql in deletes)
    assert not Task.objects.in_workspace(workspace).exists()
    assert other.steps.count() == 1
