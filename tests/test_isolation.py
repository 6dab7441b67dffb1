"""Promise R1: a workspace never shows in, or changes from, another."""

import time

import pytest

from tests.isolation.canaries import unmarked_fields
from tests.isolation.cast import seeded, stage  # noqa: F401
from tests.isolation.expectations import rows_without_a_route, without_a_row
from tests.isolation.matrix import inside_routes, outside_routes, run_inside, run_outside
from tests.isolation.walk import all_routes

pytestmark = pytest.mark.django_db

ASKERS = [
    "anonymous",
    "owner",
    "admin",
    "editor",
    "reviewer",
    "viewer",
    "removed member",
    "stranger with a workspace",
    "stranger without one",
    "superuser",
]


@pytest.mark.parametrize("name", ASKERS)
def test_inside(stage, name):
    t = time.time()
    o = run_inside(stage, stage.askers[name], inside_routes())
    print(name, o.cells, len(o.findings), time.time() - t)
    assert not o.findings, "\n".join(o.findings[:80])


def test_marked(stage):
    assert not unmarked_fields(stage.workspaces.values())


def test_rows():
    assert not without_a_row(all_routes())
    assert not rows_without_a_route(all_routes())


@pytest.mark.parametrize("name", ASKERS)
def test_outside(stage, name):
    t = time.time()
    o = run_outside(stage, stage.askers[name], outside_routes())
    print(name, o.cells, len(o.findings), time.time() - t)
    assert not o.findings, "\n".join(o.findings[:200])


from tests.isolation import substitution as sub


@pytest.mark.parametrize(
    "f", [sub.run_form_fields, sub.run_successor, sub.run_queries, sub.run_overposting, sub.run_nonsense]
)
def test_sub(stage, f):
    o = f(stage)
    print(f, o.cells)
    assert not o.findings, "\n".join(o.findings)


def test_forms():
    assert not sub.unlisted_forms()
