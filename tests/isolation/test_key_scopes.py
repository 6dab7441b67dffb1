"""A key never reaches beyond its scopes: every operation with keys limited by verb, agent, channel, label."""

from contextlib import nullcontext
from dataclasses import replace

import pytest

from personas.api import key_limits, views
from personas.roles import Permission
from prompts import api_lookup
from tests.isolation.api_table import known_endpoints
from tests.isolation.api_walk import all_endpoints, operations_at
from tests.isolation.cast import rolled_back
from tests.isolation.scope_matrix import (
    CHANNELS,
    LABELS,
    build_request,
    every_scope,
    one_scope_in_turn,
    run_scopes,
    run_verbs,
    send,
    set_scope_stage,
)
from tests.isolation.turns import operations_in_turn, turn_of_this_run

pytestmark = [pytest.mark.django_db]


@pytest.fixture(scope="module")
def scope(seeded, django_db_blocker):
    with django_db_blocker.unblock(), rolled_back():
        yield set_scope_stage(seeded)


@pytest.fixture
def clean_scope(scope, db):
    with rolled_back():
        yield scope


def endpoints_named(*names):
    chosen = [endpoint for endpoint in known_endpoints() if str(endpoint) in names]
    assert len(chosen) == len(names)
    return chosen


@pytest.mark.slow
def test_a_limited_key_reaches_nothing_outside_in_this_turn(clean_scope, tally):
    turn = turn_of_this_run()
    endpoints = operations_in_turn(known_endpoints(), turn, lambda endpoint: endpoint.name)
    tally(run_scopes(clean_scope, endpoints[turn % 3 :: 3], one_scope_in_turn(turn)), at_least=60)


@pytest.mark.slow
def test_a_key_with_one_verb_is_refused_everything_else_in_this_turn(clean_scope, tally):
    turn = turn_of_this_run()
    endpoints = operations_in_turn(known_endpoints(), turn, lambda endpoint: endpoint.name)
    tally(run_verbs(clean_scope, endpoints, lambda number, place: (number + turn) % 8 == place), at_least=50)


@pytest.mark.promise("R16")
@pytest.mark.hard
def test_no_limited_key_reaches_anything_outside(clean_scope, tally):
    tally(run_scopes(clean_scope, known_endpoints(), every_scope), at_least=3_000)


@pytest.mark.promise("R16")
@pytest.mark.hard
def test_no_key_with_one_verb_does_anything_else(clean_scope, tally):
    tally(run_verbs(clean_scope, known_endpoints(), lambda number, place: True), at_least=800)


# --- planted faults ------------------------------------------------------------------------------------


def ignore_limit(monkeypatch, dimension):
    """Remove the rule for one dimension, in both lines of defence."""
    remaining = tuple(name for name in key_limits.LIMITS if name != dimension)
    monkeypatch.setattr(key_limits, "LIMITS", remaining)
    monkeypatch.setattr(views, "limit_changes", lambda caller, touches: nullcontext())


@pytest.mark.slow
@pytest.mark.promise("R16")
@pytest.mark.planted
def test_ignored_channels_are_found(clean_scope, monkeypatch):
    ignore_limit(monkeypatch, CHANNELS)
    endpoints = endpoints_named("PATCH agents-one", "POST memories-list", "PATCH memories-one")
    found = run_scopes(clean_scope, endpoints, lambda *cell: cell[2].limits == (CHANNELS,)).findings
    assert any("PATCH agents-one · inside: changed records" in finding for finding in found), found
    assert any("POST memories-list · inside: changed prompts and labels" in finding for finding in found), (
        found
    )


@pytest.mark.slow
@pytest.mark.promise("R16")
@pytest.mark.planted
def test_ignored_labels_are_found(clean_scope, monkeypatch):
    ignore_limit(monkeypatch, LABELS)
    endpoints = endpoints_named("POST memories-list", "PUT prompt-settings-prompt")
    found = run_scopes(clean_scope, endpoints, lambda *cell: cell[2].limits == (LABELS,)).findings
    assert any("POST memories-list · inside: changed prompts and labels" in finding for finding in found), (
        found
    )
    assert any("PUT prompt-settings-prompt · inside: changed records" in finding for finding in found), found


@pytest.mark.slow
@pytest.mark.promise("R16")
@pytest.mark.planted
def test_rows_outside_of_the_channels_are_found(clean_scope, monkeypatch):
    list_visible_prompts = api_lookup.list_visible_prompts

    def list_all(caller):
        scopes = {name: values for name, values in caller.key.scopes.items() if name != CHANNELS}
        caller.key.scopes = scopes
        return list_visible_prompts(caller)

    monkeypatch.setattr(api_lookup, "list_visible_prompts", list_all)
    endpoints = endpoints_named("GET versions-list", "PUT labels-one")
    found = run_scopes(clean_scope, endpoints, lambda *cell: cell[2].limits == (CHANNELS,)).findings
    assert any("GET versions-list · channels: answered 200" in finding for finding in found), found
    assert any("PUT labels-one · channels: changed prompts and labels" in finding for finding in found), found


@pytest.mark.promise("R16")
@pytest.mark.planted
def test_an_override_with_manage_is_found(clean_scope, monkeypatch):
    [target] = [endpoint for endpoint in all_endpoints() if str(endpoint) == "POST releases-override"]
    changed = replace(target.operation, permission=Permission.MANAGE_KEYS)
    monkeypatch.setitem(operations_at(target.pattern), target.method, changed)
    endpoints = endpoints_named("POST releases-override")
    found = run_verbs(clean_scope, endpoints, lambda number, place: True).findings
    assert any("manage only · POST releases-override: answered 200" in finding for finding in found), found


@pytest.mark.slow
@pytest.mark.promise("R16")
def test_an_operation_without_a_declaration_is_closed_to_limited_keys(clean_scope, monkeypatch):
    [target] = [endpoint for endpoint in all_endpoints() if str(endpoint) == "GET agents-one"]
    changed = replace(target.operation, touches=None)
    monkeypatch.setitem(operations_at(target.pattern), target.method, changed)
    for key in clean_scope.keys:
        path, body = build_request(clean_scope.inside, key.caller, target)
        assert send(key.caller, target, path, body).status == 403
