"""Audit of row-level security: find tables with workspace data that are not protected by the policy."""

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
    """A row of POLICIES_SQL without the table name: one policy of a table.

    `is_on` is whether row-level security is enabled on the table. A table without policies has one row with
    empty texts.
    """

    is_on: bool
    name: str
    command: str
    using: str
    with_check: str


def get_tenant_tables() -> dict[str, str]:
    """Return the tables with workspace data and their workspace column."""
    owned = [model for model in apps.get_models() if issubclass(model, WorkspaceOwned)]
    return {Workspace._meta.db_table: "id", **{model._meta.db_table: "workspace_id" for model in owned}}


def find_unprotected_tables() -> list[str]:
    """Return a message for each table that is not restricted to one workspace."""
    tables, policies = get_tenant_tables(), defaultdict[str, list[TablePolicy]](list)
    with connection.cursor() as cursor:
        cursor.execute(POLICIES_SQL, [list(tables)])
        for table, *rest in cursor.fetchall():
            policies[table].append(TablePolicy(*rest))
    return [
        f"{table}: {gap}"
        for table, column in tables.items()
        for gap in find_policy_gaps(policies[table], column)
    ]


def find_policy_gaps(policies: list[TablePolicy], column: str) -> Iterator[str]:
    if not any(policy.is_on for policy in policies):
        yield "row-level security is disabled"
    if [policy.name for policy in policies] != [POLICY_NAME]:
        # Permissive policies are combined with OR: a second one would allow more rows.
        yield f"it has policies other than {POLICY_NAME}"
    for policy in policies:
        if policy.command != ALL_COMMANDS or not all(
            has_workspace_condition(expression, column) for expression in (policy.using, policy.with_check)
        ):
            yield f"{policy.name or 'no policy'} does not check the workspace"


def has_workspace_condition(expression: str, column: str) -> bool:
    """Return whether a policy expression compares the column with the workspace scope.

    The text is compared loosely, because PostgreSQL versions format expressions differently.
    """
    compact = "".join(expression.split()).replace("(", "").replace(")", "")
    return (
        compact.startswith("CASEcurrent_setting")
        and compact.count(SCOPE_SETTING) == 1
        and compact.count("THENtrue") == 2
        and f"WHEN{column}::textTHENtrue" in compact
        and "WHEN'all'::textTHENtrue" in compact
        and compact.endswith("ELSEfalseEND")
    )
