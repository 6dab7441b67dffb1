"""Planted faults in the API: the isolation matrix must detect each of them."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.core.exceptions import PermissionDenied
from django.utils import timezone

from personas.api import authentication, record_lookup
from personas.api.exception_handler import NOT_FOUND_PROBLEM
from personas.api.operations import Operation
from personas.api.problems import ProblemError
from personas.api.record_resource import RecordResource
from personas.api.responses import no_content_response
from personas.api.schema import line_schema, object_schema
from personas.api.views import endpoint
from personas.api_keys import selectors as key_selectors
from personas.memories.api import MemoryResource
from personas.models import Memory, Soul
from personas.roles import Permission
from personas.souls.api import SoulResource
from tests.isolation.api_cast import before, callers, known_callers  # noqa: F401  # fixtures
from tests.isolation.api_matrix import run
from tests.isolation.api_policy import find_policy_mismatches
from tests.isolation.api_substitution import find_unknown_fields, run_bodies, run_queries
from tests.isolation.api_table import find_table_gaps, known_endpoints
from tests.isolation.api_walk import ApiEndpoint, all_endpoints, operations_at

pytestmark = [pytest.mark.planted, pytest.mark.promise("R1"), pytest.mark.django_db]


@pytest.fixture(autouse=True)
def unfiltered_managers(monkeypatch):
    """Managers do not filter by the current workspace, which would hide the planted faults."""
    monkeypatch.setattr("personas.tenancy.models.get_scope_id", lambda: None)


@pytest.fixture
def findings(stage, callers, before):  # noqa: F811
    """Return a function that runs one caller on a few operations and returns the findings."""

    def send_request(name, *endpoints, way=None):
        chosen = [api_endpoint for api_endpoint in known_endpoints() if str(api_endpoint) in endpoints]
        assert len(chosen) == len(endpoints)
        return (way or run)(stage, callers[name], chosen, before).findings

    return send_request


def plant(monkeypatch, name, **changed):
    """Replace attributes of an operation."""
    [target] = [one for one in all_endpoints() if str(one) == name]
    changed_operation = replace(target.operation, **changed)
    monkeypatch.setitem(operations_at(target.pattern), target.method, changed_operation)


@pytest.mark.control
def test_without_a_fault_nothing_is_found(findings):
    endpoints = ["GET souls-list", "GET souls-one", "PATCH souls-one", "POST keys-list", "GET memories-list"]
    for name in ("owner", "viewer", "bot", "lost member", "expired owner", "owner of elsewhere"):
        assert not findings(name, *endpoints)
    assert not findings("owner", *endpoints, way=run_bodies) + findings("owner", *endpoints, way=run_queries)


def test_a_resource_that_forgets_its_workspace_is_found(findings, monkeypatch):
    monkeypatch.setattr(SoulResource, "get_queryset", lambda self, workspace: Soul.unscoped.all())
    # A compiled query without the workspace is refused: see tests/core/db/fast/test_compiled_query.py.
    monkeypatch.setattr(record_lookup, "LOCKED_ON_LOAD", frozenset())
    assert any("leaks Soul.name of elsewhere" in finding for finding in findings("owner", "GET souls-list"))
    reported = findings("editor", "GET souls-one", "PATCH souls-one", "DELETE souls-one")
    assert any("GET souls-one · crossed: expected 404, got 200" in finding for finding in reported)
    assert any(
        "PATCH souls-one · crossed: changed personas_soul of elsewhere" in finding for finding in reported
    )
    assert any(
        "DELETE souls-one · crossed: changed personas_soul of elsewhere" in finding for finding in reported
    )


def test_an_operation_that_has_lost_its_permission_is_found(findings, monkeypatch):
    plant(monkeypatch, "PATCH souls-one", permission=Permission.READ)
    assert any("own: expected 403, got 200" in finding for finding in findings("viewer", "PATCH souls-one"))
    assert any("PATCH souls-one takes read" in finding for finding in find_policy_mismatches(all_endpoints()))


def test_bots_that_can_create_keys_are_found(findings, monkeypatch):
    plant(monkeypatch, "POST keys-list", bots=True)
    assert any("own: expected 403, got 201" in finding for finding in findings("bot", "POST keys-list"))
    assert any("open to bots" in finding for finding in find_policy_mismatches(all_endpoints()))


def test_a_response_that_distinguishes_foreign_from_missing_is_found(findings, monkeypatch):
    find = RecordResource.find_record

    def telling(self, call, key):
        if self.model.unscoped.filter(**{self.lookup_field: key}).exclude(workspace=call.workspace).exists():
            raise PermissionDenied
        return find(self, call, key)

    monkeypatch.setattr(RecordResource, "find_record", telling)
    reported = findings("owner", "GET souls-one")
    assert any("crossed and missing can be told apart" in finding for finding in reported)


def test_a_rejection_with_an_extra_header_is_found(findings, monkeypatch):
    """Status and body are the same; only a header differs."""
    find = RecordResource.find_record

    def telling(self, call, key):
        if self.model.unscoped.filter(**{self.lookup_field: key}).exclude(workspace=call.workspace).exists():
            raise ProblemError(replace(NOT_FOUND_PROBLEM, headers={"Retry-After": "1"}))
        return find(self, call, key)

    monkeypatch.setattr(RecordResource, "find_record", telling)
    reported = findings("owner", "GET souls-one")
    assert any("crossed and missing can be told apart" in finding for finding in reported)


@pytest.mark.slow
def test_a_missing_role_check_is_found(findings, monkeypatch):
    monkeypatch.setattr(authentication, "resolve_permissions", lambda key, role: frozenset(Permission))
    assert any("expected 403, got 201" in finding for finding in findings("viewer", "POST souls-list"))
    assert any("expected 403, got 201" in finding for finding in findings("reading owner", "POST souls-list"))


def test_a_missing_membership_check_is_found(findings, monkeypatch):
    monkeypatch.setattr(authentication, "require_creator_role", lambda key: "owner")
    assert any("expected 401, got 200" in finding for finding in findings("lost member", "GET souls-list"))


def test_a_late_clock_in_authentication_is_found(findings, monkeypatch):
    class Late:
        @staticmethod
        def now():
            return timezone.now() - timedelta(days=1)

    monkeypatch.setattr(key_selectors, "timezone", Late)
    assert any("expected 401, got 200" in finding for finding in findings("expired bot", "GET prompts-list"))


def test_a_body_that_may_name_foreign_records_is_found(findings, monkeypatch):
    def anywhere(call, model, attribute, named):
        found = {getattr(row, attribute): row for row in model.unscoped.filter(**{f"{attribute}__in": named})}
        return [found[name] for name in named]

    monkeypatch.setattr(RecordResource, "find_linked_records", staticmethod(anywhere))
    reported = findings("owner", "POST tasks-list", "PATCH agents-one", way=run_bodies)
    assert any(
        "POST tasks-list agent: foreign and missing can be told apart" in finding for finding in reported
    )
    assert any("PATCH agents-one soul" in finding for finding in reported)


def test_a_filter_that_accepts_foreign_slugs_is_found(findings, monkeypatch):
    def anywhere(self, rows, call):
        return Memory.unscoped.filter(agent__slug=call.query["agent"]) if "agent" in call.query else rows

    monkeypatch.setattr(MemoryResource, "apply_filters", anywhere)
    reported = findings("owner", "GET memories-list", way=run_queries)
    assert any("GET memories-list?agent: leaks Memory.text of elsewhere" in finding for finding in reported)


def test_an_operation_that_writes_to_other_workspaces_is_found(findings, monkeypatch):
    def shelve_all(call, key):
        Soul.unscoped.update(archived_at=timezone.now())
        return no_content_response()

    plant(monkeypatch, "DELETE souls-one", run=shelve_all)
    reported = findings("owner", "DELETE souls-one")
    assert any("own: changed personas_soul of elsewhere" in finding for finding in reported)


def test_an_operation_that_does_nothing_is_found(findings, monkeypatch):
    plant(monkeypatch, "DELETE souls-one", run=lambda call, key: no_content_response())
    assert any(
        "the positive control is empty" in finding for finding in findings("owner", "DELETE souls-one")
    )


def test_an_unlisted_operation_is_found():
    body = object_schema({"shadow": line_schema(20)})
    secret = Operation(
        lambda call, key: no_content_response(), "Secret", permission=Permission.EDIT, body=body
    )
    api_endpoint = ApiEndpoint("POST", endpoint("secrets/<slug:key>", "secrets", post=secret), secret)
    assert any(
        "POST secrets has no row: say in tests/isolation" in finding
        for finding in find_table_gaps([*all_endpoints(), api_endpoint])
    )
    assert any("does “shadow” name a row?" in finding for finding in find_unknown_fields([api_endpoint]))
