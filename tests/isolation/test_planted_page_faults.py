"""Planted faults in pages, models and the database: the isolation tests must detect each of them."""

import logging
import re
import sys
from types import ModuleType

import pytest
from django.core import mail
from django.core.cache import cache
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.http import HttpResponse
from django.test import override_settings
from django.urls import include, path
from django.utils import timezone

from personas.agents.views import AgentPages
from personas.models import (
    Agent,
    DailyUsage,
    Identity,
    Membership,
    ScopedManager,
    SecurityEvent,
    User,
    WorkspaceOwned,
)
from personas.records.forms import RecordChoiceField
from personas.records.views import RecordPages
from personas.tenancy import middleware
from personas.tenancy.models import TenantQuerySet
from tests.isolation import architecture, scoping
from tests.isolation.canaries import find_unmarked_fields
from tests.isolation.cast import ELSEWHERE, HARBOUR
from tests.isolation.expectations import find_routes_without_row
from tests.isolation.matrix import inside_routes, run_inside, run_outside
from tests.isolation.substitution import run_form_fields, run_queries
from tests.isolation.walk import all_routes
from tests.pytest_servers import get_citus_cluster

pytestmark = [pytest.mark.planted, pytest.mark.promise("R1"), pytest.mark.django_db]


@pytest.fixture(autouse=True)
def unfiltered_managers(monkeypatch):
    """Managers do not filter by the current workspace, which would hide the planted faults."""
    monkeypatch.setattr("personas.tenancy.models.get_scope_id", lambda: None)


def inside(stage, requester, *names):
    """The findings of one requester on a few routes."""
    routes = [route for route in inside_routes() if route.name in names]
    assert routes
    return run_inside(stage, stage.requesters[requester], routes).findings


# --- no fault ------------------------------------------------------------------------------------------


@pytest.mark.control
def test_without_a_fault_nothing_is_found(stage):
    assert not inside(stage, "viewer", "agents:list", "agents:detail", "agents:archive")
    assert not inside(stage, "stranger without one", "agents:list", "agents:detail")
    # test_scoping.py and test_architecture.py check the same for rows, database and code.


# --- scoped queries and links --------------------------------------------------------------------------


@pytest.mark.slow
def test_a_broken_tenant_filter_is_found(stage, monkeypatch):
    # Queries that are compiled once are compiled before the fault: they cannot be compiled without a filter.
    assert not inside(stage, "viewer", "agents:list", "agents:detail")
    monkeypatch.setattr(ScopedManager, "in_workspace", lambda self, workspace: TenantQuerySet(self.model))
    findings = inside(stage, "viewer", "agents:list", "agents:detail")
    assert any("leaks Agent.name of elsewhere" in finding for finding in findings), findings
    # Citus rejects some joins without a workspace, so the page may fail there.
    statuses = "(200|500)" if get_citus_cluster() else "200"
    assert any(re.search(f"crossed: expected 404, got {statuses}", finding) for finding in findings), findings
    assert scoping.find_wrongly_scoped_rows(stage)


def test_one_page_that_forgets_its_workspace_is_found(stage, monkeypatch):
    rows = Agent.unscoped.order_by("name")
    monkeypatch.setattr(AgentPages, "rows", lambda self, request: rows.all())
    assert any("leaks" in finding for finding in inside(stage, "reviewer", "agents:list"))
    findings = inside(stage, "editor", "agents:archive")
    assert any("crossed: was refused and yet wrote to" in finding for finding in findings)


def test_an_action_that_changes_other_workspaces_is_found(stage, monkeypatch):
    def archive_all(self, record, request):
        Agent.unscoped.update(archived_at=timezone.now())
        return record

    monkeypatch.setattr(AgentPages, "apply_archive", archive_all)
    findings = inside(stage, "editor", "agents:archive")
    assert any("own: changed personas_agent of elsewhere" in finding for finding in findings)


def test_an_unscoped_query_is_found(monkeypatch):
    monkeypatch.setattr(ScopedManager, "get_queryset", lambda self: TenantQuerySet(self.model))
    assert scoping.find_unscoped_methods(Agent)


@pytest.mark.hard
def test_a_save_without_foreign_link_checks_is_found(stage, monkeypatch):
    monkeypatch.setattr(WorkspaceOwned, "check_foreign_links", lambda self: None)
    assert scoping.find_accepted_links(stage)
    assert scoping.find_accepted_moves(stage)
    assert scoping.find_accepted_bulk_writes(stage)


@pytest.mark.hard
def test_an_unchecked_bulk_write_is_found(stage, monkeypatch):
    monkeypatch.delattr(TenantQuerySet, "update")
    assert any("update()" in finding for finding in scoping.find_accepted_bulk_writes(stage))


def test_a_child_in_another_workspace_than_its_parent_is_found(stage):
    foreign = stage.row(ELSEWHERE, "identities").pk
    Agent.unscoped.filter(pk=stage.row(HARBOUR, "agents").pk).update(identity_id=foreign)
    assert scoping.find_foreign_parents(stage)


# --- access to pages -----------------------------------------------------------------------------------


def test_access_for_outsiders_is_found(stage, monkeypatch):
    everybody = Membership.unscoped.select_related("workspace").filter(role="owner")
    monkeypatch.setattr(middleware, "list_memberships", lambda user: list(everybody))
    findings = inside(stage, "stranger without one", "agents:list", "agents:archive")
    assert any("expected 404, got 200" in finding for finding in findings)
    assert any("was refused and yet wrote to" in finding for finding in findings)


def test_a_missing_role_check_is_found(stage, monkeypatch):
    monkeypatch.setattr(middleware, "has_permission", lambda role, permission: True)
    findings = inside(stage, "viewer", "agents:archive", "members:remove")
    assert any("members:remove · own: expected 403, got 302" in finding for finding in findings)


def test_a_page_that_has_lost_its_permission_is_found(stage, monkeypatch):
    [view] = [route.view for route in all_routes() if route.name == "souls:new"]
    monkeypatch.delattr(view, "needs")
    findings = inside(stage, "viewer", "souls:new")
    assert any("GET souls:new · own: expected 403, got 200" in finding for finding in findings)


def test_a_response_that_distinguishes_foreign_from_missing_is_found(stage, monkeypatch):
    find = RecordPages.find

    def telling(self, request, key):
        if self.model.unscoped.filter(**{self.key: key}).exclude(workspace=request.workspace).exists():
            raise PermissionDenied
        return find(self, request, key)

    monkeypatch.setattr(RecordPages, "find", telling)
    findings = inside(stage, "owner", "agents:history")
    assert any("crossed and missing can be told apart" in finding for finding in findings)


def test_an_admin_site_open_to_members_is_found(stage, monkeypatch):
    monkeypatch.setattr("project.admin_site.OperatorSite.has_permission", lambda self, request: True)
    routes = [route for route in all_routes() if route.name == "admin:personas_agent_changelist"]
    assert run_outside(stage, stage.requesters["viewer"], routes).findings


# --- other ways to leak --------------------------------------------------------------------------------


def foreign_name(stage):
    return stage.row(ELSEWHERE, "agents").name


def leak_by_header(text):
    return HttpResponse("", headers={"X-Hint": text})


def leak_by_log(text):
    logging.getLogger("personas").warning("Looked at %s", text)
    return HttpResponse("")


def leak_by_cache(text):
    cache.set("last-agent", text)
    return HttpResponse("")


def leak_by_mail(text):
    mail.send_mail("News", text, None, ["someone@example.com"])
    return HttpResponse("")


@pytest.mark.parametrize("way", [leak_by_header, leak_by_log, leak_by_cache, leak_by_mail])
def test_a_leak_outside_the_page_is_found(stage, monkeypatch, way):
    monkeypatch.setattr(AgentPages, "render_page", lambda self, *args, **more: way(foreign_name(stage)))
    assert any("leaks Agent.name" in finding for finding in inside(stage, "viewer", "agents:list"))


@pytest.mark.parametrize(
    ("header", "value", "finding"),
    [
        ("Cache-Control", "private, max-age=60", "may be stored by a cache"),
        ("Content-Security-Policy", "script-src 'self' 'unsafe-inline'", "another content security policy"),
    ],
)
def test_a_page_with_a_weaker_header_is_found(stage, monkeypatch, header, value, finding):
    page = HttpResponse("", headers={header: value})
    monkeypatch.setattr(AgentPages, "render_page", lambda self, *args, **more: page)
    assert any(finding in one for one in inside(stage, "viewer", "agents:list"))


@pytest.mark.hard
def test_a_choice_that_offers_foreign_records_is_found(stage, monkeypatch):
    def set_choices(self, rows, current=None):
        self.queryset = rows.model.unscoped.all()

    monkeypatch.setattr(RecordChoiceField, "set_choices", set_choices)
    findings = run_form_fields(stage).findings
    assert any("agents:new identity: leaks Identity" in finding for finding in findings)


@pytest.mark.hard
def test_a_filter_that_accepts_foreign_ids_is_found(stage, monkeypatch):
    foreign = Agent.unscoped.filter(workspace=stage.workspaces[ELSEWHERE]).order_by("pk")
    monkeypatch.setattr(
        AgentPages, "filter_rows", lambda self, rows, chosen: foreign.prefetch_related(None).all()
    )
    assert any("agents:list" in finding for finding in run_queries(stage, turn=0).findings)


def test_a_text_field_without_a_canary_is_found(stage):
    Identity.unscoped.filter(workspace=stage.workspaces[HARBOUR]).update(vibe="plain words")
    assert [
        finding for finding in find_unmarked_fields(stage.workspaces.values()) if "Identity.vibe" in finding
    ]


# --- routes --------------------------------------------------------------------------------------------


def unlisted(request, **values):
    return HttpResponse("")


@pytest.fixture
def more_routes():
    """The product's routes and two that the table does not list."""
    urls = ModuleType("tests.more_routes")
    patterns = [
        path("w/<slug:workspace>/secrets/", unlisted, name="secrets"),
        path("debug/", unlisted, name="debug"),
        path("", include("project.urls")),
    ]
    vars(urls)["urlpatterns"] = patterns
    sys.modules[urls.__name__] = urls
    with override_settings(ROOT_URLCONF=urls.__name__):
        yield
    del sys.modules[urls.__name__]


def test_an_unlisted_route_is_found(more_routes):
    findings = find_routes_without_row(all_routes())
    assert len(findings) == 2
    assert "secrets (w/<slug:workspace>/secrets/) has no row: say in tests/isolation" in findings[0]


# --- the database --------------------------------------------------------------------------------------


def run_sql(*statements):
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # Tables with deferred constraint checks cannot be altered.
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for statement in statements:
            cursor.execute(statement)


def test_a_removed_unique_constraint_is_found(stage):
    run_sql("DROP INDEX one_open_invitation_per_address")
    assert any(
        "one_open_invitation_per_address" in finding for finding in scoping.find_unenforced_constraints(stage)
    )


@pytest.mark.skipif(
    get_citus_cluster() is not None,
    reason="Citus cannot check deferred foreign keys early, which ALTER TABLE in the same transaction needs",
)
def test_a_removed_check_is_found(stage):
    if connection.vendor == "postgresql":
        run_sql("ALTER TABLE personas_memory DROP CONSTRAINT memory_status_known")
    else:
        run_sql("PRAGMA ignore_check_constraints = ON")
    try:
        assert any("memory_status_known" in finding for finding in scoping.find_unenforced_constraints(stage))
    finally:
        if connection.vendor == "sqlite":
            run_sql("PRAGMA ignore_check_constraints = OFF")


def test_a_check_constraint_without_a_violation_is_found(monkeypatch):
    monkeypatch.delitem(scoping.VIOLATIONS, "task_status_known")
    assert scoping.find_untested_constraints()


def test_a_removed_trigger_is_found(stage):
    if connection.vendor == "postgresql":
        run_sql("DROP TRIGGER personas_revision_only_grows ON personas_revision")
    else:
        run_sql("DROP TRIGGER personas_revision_no_UPDATE", "DROP TRIGGER personas_revision_no_DELETE")
    assert len(scoping.find_mutable_history(stage)) == 2
    assert scoping.find_missing_triggers()


def test_a_table_without_a_workspace_is_found(monkeypatch):
    monkeypatch.setattr(scoping, "NOT_TENANT", {User, SecurityEvent, DailyUsage})
    assert scoping.find_unowned_models() == ["Workspace belongs to no workspace"]


# --- architecture --------------------------------------------------------------------------------------


def test_a_file_with_an_unscoped_query_is_found(tmp_path):
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / "views.py").write_text("rows = Skill.unscoped.all()\n")
    assert architecture.find_unscoped_queries(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "{{ agent.name|safe }}",
        "{% autoescape off %}{{ agent.name }}{% endautoescape %}",
        "{%- autoescape false %}{{ agent.name }}{% endautoescape %}",
        "<script>alert(1)</script>",
        '<p style="color: red">',
        '<button class="x" onclick="go()">',
        '<a href="javascript:go()">',
    ],
)
def test_an_unsafe_template_is_found(tmp_path, text):
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "page.html").write_text(text)
    assert architecture.find_unsafe_templates(tmp_path)


def test_a_pure_module_that_imports_django_is_found():
    assert architecture.find_impure_modules(["personas.models"])
