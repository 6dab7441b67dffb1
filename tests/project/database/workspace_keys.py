"""Indexes of tenant tables, read from the database, and why some do not begin with the workspace."""

from dataclasses import dataclass

from django.apps import apps
from django.db import connection

from personas.models import WorkspaceOwned

INDEXES = """
    SELECT t.relname, i.relname, x.indisprimary, x.indisunique,
           (SELECT array_agg(coalesce(a.attname, '()') ORDER BY k.place)
            FROM unnest(x.indkey::int2[]) WITH ORDINALITY AS k (attnum, place)
            LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.attnum AND k.attnum > 0)
    FROM pg_index x
    JOIN pg_class i ON i.oid = x.indexrelid
    JOIN pg_class t ON t.oid = x.indrelid
    WHERE t.relname = ANY (%s) AND t.relnamespace = current_schema()::regnamespace
    ORDER BY t.relname, i.relname
"""
SWEEP = "a periodic job searches all workspaces at once"
SECRET = "looked up by a secret, which determines the workspace"
# Indexes that begin neither with the workspace nor with a foreign key to one of its rows, and why.
EXCUSED = {
    "personas_apikey_digest_key": SECRET,
    "personas_apikey_digest_*_like": "made by Django beside the one above",
    "personas_invitation_nonce_key": SECRET,
    "personas_invitation_nonce_*_like": "made by Django beside the one above",
    "skills_agentcontext_source_id_*": "of a column that no model has; it is dropped with the next release",
    "idempotent_responses_by_age": SWEEP,
    "prompts_by_change": SWEEP,
    "erasures_to_finish": SWEEP,
}


@dataclass(frozen=True)
class Index:
    """An index of a table, with its columns."""

    table: str
    name: str
    is_primary: bool
    is_unique: bool
    columns: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.table}.{self.name} ({', '.join(self.columns)})"


def tenant_models() -> list[type[WorkspaceOwned]]:
    return [model for model in apps.get_models() if issubclass(model, WorkspaceOwned)]


def indexes() -> list[Index]:
    with connection.cursor() as cursor:
        cursor.execute(INDEXES, [[model._meta.db_table for model in tenant_models()]])
        return [
            Index(table, name, is_primary, is_unique, tuple(columns))
            for table, name, is_primary, is_unique, columns in cursor.fetchall()
        ]


def links() -> set[tuple[str, str]]:
    """Return the foreign key columns; their ids are unique over all workspaces."""
    return {
        (model._meta.db_table, str(field.column))
        for model in tenant_models()
        for field in model._meta.concrete_fields
        if field.is_relation
    }


def not_led(candidates: list[Index]) -> list[Index]:
    """Return the indexes that begin neither with the workspace nor a foreign key and are no primary key."""
    known = links()
    return [
        index
        for index in candidates
        if not index.is_primary
        and index.columns[0] != "workspace_id"
        and (index.table, index.columns[0]) not in known
    ]
