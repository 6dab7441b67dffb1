"""After `distribute` on PostgreSQL without Citus, every page and every API operation answers as before.

The keys of all tables then contain the workspace. A query that relies on `id` alone as the key fails.
"""

import pytest
from django.db import connection

from project.distribution.services import distribute, plan_distribution
from tests.isolation import api_matrix, matrix
from tests.isolation.api_cast import KeyFactory, before, callers, known_callers  # noqa: F401  # fixtures
from tests.isolation.api_table import known_endpoints

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "postgresql", reason="keys are changed on PostgreSQL only"),
    pytest.mark.slow,
]


@pytest.fixture
def distributed(stage):
    """Change the keys in the transaction of this test, after the deferred checks of the seeded rows."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    catalog, steps = plan_distribution()
    distribute(steps, catalog, print)
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
    return stage


def is_read_by_owner(cell, number):
    return cell.target == "own" and (getattr(cell, "method", "") or cell.endpoint.method) == "GET"


def test_every_page_answers(distributed, tally, monkeypatch):
    # The callers of the API, which the other test of this module may have created, are rows too.
    monkeypatch.setattr(distributed, "before", matrix.digests(distributed))
    routes = matrix.inside_routes()
    tally(
        matrix.run_inside(distributed, distributed.requesters["owner"], routes, is_read_by_owner),
        at_least=100,
    )


def test_every_api_operation_that_reads_answers(distributed, callers, before, tally):  # noqa: F811
    endpoints = [endpoint for endpoint in known_endpoints() if endpoint.method == "GET"]
    tally(
        api_matrix.run(
            distributed,
            callers["owner"],
            endpoints,
            before,
            lambda cell, number: cell.target == "own" and not cell.method,
        ),
        at_least=60,
    )
