"""Which tables stand behind the second wall, and where it has a hole."""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from django.apps import apps
from django.db import connection

from core.db.row_level_security import POLICY_NAME
from core.db.workspace_scope import SCOPE_SETTING
from personas.models import Workspace, WorkspaceOwned

POLICIES_SQL = """
SELECT t.relname, t.relrowsecurity, coalesce(p.polname, ''), coalesce(p.polcmd::text, ''),
coalesce(pg_get_expr(p.polqual, t.oid), ''), coalesce(pg_get_expr(p.polwithcheck, t.oid), '')
FROM pg_class t LEFT JOIN pg_policy p ON p.polrelid = t.oid
WHERE t.relname = ANY(%s) AND t.relnamespace = current_schema()::regnamespace
"""
ALL_COMMANDS = "*"


class TablePolicy(NamedTuple):
    """One of a table's policies, as PostgreSQL tells it."""

    is_on: bool
    name: str
    verb: str
    seen: str
    written: str


def get_tenant_tables() -> dict[str, str]:
    """Every table with rows of workspaces, and the column that says whose they are."""
    owned = [model for model in apps.get_models() if issubclass(model, WorkspaceOwned)]
    return {Workspace._meta.db_table: "id", **{model._meta.db_table: "workspace_id" for model in owned}}


def find_unprotected_tables() -> list[str]:
    """Those that show more than one workspace, in words; none where all is well."""
    tables, found = get_tenant_tables(), defaultdict[str, list[TablePolicy]](list)
    with connection.cursor() as cursor:
        cursor.execute(POLICIES_SQL, [list(tables)])
        for table, *rest in cursor.fetchall():
            found[table].append(TablePolicy(*rest))
    return [
        f"{table}: {hole}"
        for table, column in tables.items()
        for hole in find_policy_gaps(found[table], column)
    ]


def find_policy_gaps(policies: list[TablePolicy], column: str) -> Iterator[str]:
    if not any(policy.is_on for policy in policies):
        yield "row security is off"
    if [policy.name for policy in policies] != [POLICY_NAME]:
        # A second one would not narrow the first: either may let a row through.
        yield f"its policies are not just {POLICY_NAME}"
    for policy in policies:
        if policy.verb != ALL_COMMANDS or not all(
            has_workspace_condition(said, column) for said in (policy.seen, policy.written)
        ):
            yield f"{policy.name or 'no policy'} does not ask for the workspace"


def has_workspace_condition(said: str, column: str) -> bool:
    """Loosely: each version of PostgreSQL has its own spelling."""
    return (
        said.strip().startswith("CASE")
        and said.count(SCOPE_SETTING) == 2
        and f"WHEN {column} THEN true" in said
    )
