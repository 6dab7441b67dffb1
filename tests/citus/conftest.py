"""Workspaces on both workers, and connections as the restricted role."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection

from personas.tenancy.lost_nodes import WORKSPACE_NODES_SQL
from project.database.roles import prepare_role
from project.distribution.catalog import query_rows
from prompts.serving.ledger_writer import close_writers
from tests.factories import make_user, make_workspace
from tests.prompts.serving.serving_stage import Stage, make_stage

RESTRICTED_ROLE = f"app_on_citus_{os.getpid()}"


@pytest.fixture(scope="session")
def stages(
    django_db_setup: None, distributed_database: None, django_db_blocker: Any
) -> Iterator[dict[str, Stage]]:
    """One workspace on each worker, by the address of the worker. The rows are committed."""
    with django_db_blocker.unblock():
        found: dict[str, Stage] = {}
        for number in range(20):
            user = make_user(f"Owner {number}")
            workspace = make_workspace(f"Place {number}", owner=user)
            node = dict(query_rows(WORKSPACE_NODES_SQL))[workspace.pk]
            if node not in found:
                found[node] = make_stage(workspace)
                found[node].edit("Be calm.")
            if len(found) == 2:
                break
        yield found


@contextmanager
def connected_as(role: str) -> Iterator[None]:
    """Connect to the database as another role. SET ROLE would keep connections to workers as before."""
    owner = connection.settings_dict["USER"]
    prepare_role(role)
    try:
        connect_again(role)
        yield
    finally:
        connect_again(owner)


def connect_again(role: str) -> None:
    close_writers()
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]  # of the PostgreSQL backend
    connection.settings_dict["USER"] = role


@pytest.fixture
def restricted(stages: dict[str, Stage], transactional_connection: None) -> Iterator[None]:
    with connected_as(RESTRICTED_ROLE):
        yield


@pytest.fixture
def transactional_connection(django_db_blocker: Any) -> Iterator[None]:
    """Allow queries outside of a transaction of the test. What is written stays until the end of the run."""
    with django_db_blocker.unblock():
        yield
