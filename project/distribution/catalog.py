"""Read from the catalogue what `distribute` has to change: tables, keys, foreign keys, and what Citus has."""

from dataclasses import dataclass, field
from typing import Any

from django.apps import apps
from django.db import connection
from django.db import models as models_fields

from personas.models import WorkspaceOwned

# Small tables that are read across workspaces. With Citus every node has a copy, and the workspace is not
# added to their keys.
REFERENCE_TABLES = (
    "personas_workspace",
    "personas_user",
    "personas_membership",
    "personas_invitation",
    "personas_apikey",
)
TENANT_TABLES_SQL = """
SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'workspace_id'
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
AND NOT a.attisdropped AND c.relname <> ALL (%s) ORDER BY c.relname
"""
# Foreign keys of tenant tables, without those that partitions inherit.
FOREIGN_KEYS_SQL = """
SELECT k.conname, s.relname, t.relname, pg_get_constraintdef(k.oid),
(SELECT array_agg(a.attname ORDER BY c.place) FROM unnest(k.conkey) WITH ORDINALITY AS c (number, place)
JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = c.number)
FROM pg_constraint k JOIN pg_class s ON s.oid = k.conrelid JOIN pg_class t ON t.oid = k.confrelid
WHERE k.contype = 'f' AND k.conparentid = 0 AND s.relnamespace = current_schema()::regnamespace
AND s.relname = ANY (%s) ORDER BY s.relname, k.conname
"""
# Primary keys, unique constraints and unique indexes without the workspace.
KEYS_SQL = """
SELECT i.relname, t.relname, k.oid IS NOT NULL, coalesce(pg_get_constraintdef(k.oid), pg_get_indexdef(i.oid))
FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid
JOIN pg_attribute w ON w.attrelid = x.indrelid AND w.attname = 'workspace_id'
LEFT JOIN pg_constraint k ON k.conindid = i.oid AND k.contype IN ('p', 'u') AND k.conrelid = t.oid
WHERE x.indisunique AND w.attnum <> ALL (x.indkey::int2[]) AND t.relnamespace = current_schema()::regnamespace
AND t.relname = ANY (%s) ORDER BY t.relname, i.relname
"""
CITUS_VERSION_SQL = "SELECT extversion FROM pg_extension WHERE extname = 'citus'"
CITUS_TABLES_SQL = """
SELECT c.relname, p.partmethod FROM pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid
WHERE c.relnamespace = current_schema()::regnamespace AND NOT c.relispartition
"""
# How pg_dist_partition marks distributed tables.
DISTRIBUTED_METHOD = "h"
REFERENCE_MODEL_SQL = """
SELECT c.relname FROM pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid
WHERE p.partmethod = 'n' AND p.repmodel = 't' AND c.relnamespace = current_schema()::regnamespace
"""


@dataclass(frozen=True)
class ForeignKey:
    """A foreign key of a tenant table."""

    name: str
    table: str
    target: str
    definition: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class UniqueKey:
    """A primary key, a unique constraint or a unique index that does not contain the workspace."""

    name: str
    table: str
    is_constraint: bool
    definition: str

    @property
    def definition_with_workspace(self) -> str:
        # pg_get_indexdef writes ON ONLY for an index on a partitioned table. Created that way, the new index
        # would not cover the partitions.
        before, bracket, columns = self.definition.replace(" ON ONLY ", " ON ", 1).partition("(")
        return f"{before}{bracket}workspace_id, {columns}"


@dataclass
class Catalog:
    """The state of the database that a plan is made from."""

    tenant_tables: list[str]
    foreign_keys: list[ForeignKey]
    keys: list[UniqueKey]
    # Foreign keys that the models have and the database does not: with Citus, migrations leave out those of
    # tables that are not distributed yet.
    missing_foreign_keys: list[ForeignKey] = field(default_factory=list)
    citus_version: str = ""
    distributed_tables: set[str] = field(default_factory=set)
    reference_tables: set[str] = field(default_factory=set)

    @property
    def has_citus(self) -> bool:
        return bool(self.citus_version)

    @property
    def undistributed_tables(self) -> list[str]:
        return [name for name in self.tenant_tables if name not in self.distributed_tables]

    @property
    def missing_reference_tables(self) -> list[str]:
        return [name for name in REFERENCE_TABLES if name not in self.reference_tables]

    @property
    def single_column_keys(self) -> list[ForeignKey]:
        """Return foreign keys between tenant tables that do not contain the workspace."""
        return [
            key for key in self.foreign_keys if key.target in self.tenant_tables and len(key.columns) == 1
        ]


def read_catalog() -> Catalog:
    tenant_tables = [name for (name,) in query_rows(TENANT_TABLES_SQL, [list(REFERENCE_TABLES)])]
    foreign_keys = [
        ForeignKey(name, table, target, definition, tuple(columns))
        for name, table, target, definition, columns in query_rows(FOREIGN_KEYS_SQL, [tenant_tables])
    ]
    catalog = Catalog(
        tenant_tables=tenant_tables,
        foreign_keys=foreign_keys,
        keys=[UniqueKey(*row) for row in query_rows(KEYS_SQL, [tenant_tables])],
        missing_foreign_keys=list_missing_foreign_keys(foreign_keys, set(tenant_tables)),
    )
    if version := query_rows(CITUS_VERSION_SQL):
        catalog.citus_version = version[0][0]
        methods = dict(query_rows(CITUS_TABLES_SQL))
        catalog.distributed_tables = {name for name, way in methods.items() if way == DISTRIBUTED_METHOD}
        catalog.reference_tables = {name for (name,) in query_rows(REFERENCE_MODEL_SQL)}
    return catalog


def get_distribution() -> str:
    """Return what `distribute` has done here: none, keys (with the workspace), or citus."""
    if connection.vendor != "postgresql":
        return "none"
    catalog = read_catalog()
    if catalog.distributed_tables:
        return "citus"
    return "none" if catalog.keys else "keys"


def list_missing_foreign_keys(foreign_keys: list[ForeignKey], tenant_tables: set[str]) -> list[ForeignKey]:
    """Return the foreign keys of the models of tenant tables that the database does not have."""
    # The last column of a foreign key is the field's own; the workspace may come before it.
    existing = {(key.table, key.columns[-1]) for key in foreign_keys}
    models = [model for model in apps.get_models() if issubclass(model, WorkspaceOwned)]
    return [
        build_foreign_key(model, each)
        for model in models
        if model._meta.db_table in tenant_tables
        for each in model._meta.concrete_fields
        if isinstance(each, models_fields.ForeignKey)
        and getattr(each, "db_constraint", True)
        and (model._meta.db_table, each.column) not in existing
    ]


def build_foreign_key(model: type[WorkspaceOwned], each: "models_fields.ForeignKey[Any, Any]") -> ForeignKey:
    editor: Any = connection.schema_editor()
    name = str(editor._fk_constraint_name(model, each, "_fk_%(to_table)s_%(to_column)s")).strip('"')
    target, to_column = each.target_field.model._meta.db_table, each.target_field.column
    definition = f'FOREIGN KEY ("{each.column}") REFERENCES "{target}" ("{to_column}")'
    definition += connection.ops.deferrable_sql()
    return ForeignKey(name, model._meta.db_table, target, definition, (str(each.column),))


def query_rows(sql: str, values: Any = None) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows
