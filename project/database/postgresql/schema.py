"""Schema editor for migrations on a database that `manage.py distribute` has changed.

On such a database the primary keys of workspace tables are (workspace_id, id), so a foreign key between them
needs both columns. Other databases get the statements of Django.
"""

from functools import cached_property
from typing import Any

from django.db.backends.ddl_references import Columns, Statement, Table
from django.db.backends.postgresql.schema import DatabaseSchemaEditor as PostgresSchemaEditor

WORKSPACE_COLUMN = "workspace_id"
# Tables whose primary key contains the workspace and another column.
KEYED_TABLES_SQL = """
SELECT t.relname FROM pg_index x JOIN pg_class t ON t.oid = x.indrelid
JOIN pg_attribute w ON w.attrelid = t.oid AND w.attname = 'workspace_id' AND w.attnum = ANY (x.indkey::int2[])
WHERE x.indisprimary AND x.indnatts > 1 AND t.relnamespace = current_schema()::regnamespace
"""
CITUS_SQL = "SELECT to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL"
# Distributed tables and reference tables. There are none before `manage.py distribute` has run.
CITUS_TABLES_SQL = """
SELECT c.relname FROM pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid
WHERE c.relnamespace = current_schema()::regnamespace
"""
# Any, because the type stubs of Django do not declare the methods that are overridden.
DjangoSchemaEditor: Any = PostgresSchemaEditor


class WorkspaceSchemaEditor(DjangoSchemaEditor):  # type: ignore[misc]  # see above
    """Adds the workspace to foreign keys between tables whose keys contain it.

    With Citus, a foreign key of a new table is left out, because the table is on the coordinator only. The
    next `manage.py distribute` distributes the table and adds it.
    """

    @property
    def sql_create_column_inline_fk(self) -> str | None:
        # A two-column foreign key cannot be declared inline in a column definition.
        inline: str = PostgresSchemaEditor.sql_create_column_inline_fk
        return None if self.keyed_tables else inline

    @cached_property
    def keyed_tables(self) -> frozenset[str]:
        return frozenset(self.query_names(KEYED_TABLES_SQL))

    @cached_property
    def citus_tables(self) -> frozenset[str]:
        with self.connection.cursor() as cursor:
            cursor.execute(CITUS_SQL)
            has_citus = cursor.fetchone()[0]
        return frozenset(self.query_names(CITUS_TABLES_SQL)) if has_citus else frozenset()

    def query_names(self, sql: str) -> list[str]:
        if self.collect_sql:
            return []
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            return [name for (name,) in cursor.fetchall()]

    def execute(self, sql: Any, params: Any = ()) -> Any:
        # None stands for a foreign key that `_create_fk_sql` left out.
        return None if sql is None else super().execute(sql, params)

    def _create_fk_sql(self, model: Any, field: Any, suffix: str) -> Any:
        table, target = model._meta.db_table, field.target_field.model._meta.db_table
        if not any(each.column == WORKSPACE_COLUMN for each in model._meta.local_concrete_fields):
            return super()._create_fk_sql(model, field, suffix)
        if self.citus_tables and table not in self.citus_tables:
            return None
        if target not in self.keyed_tables:
            return super()._create_fk_sql(model, field, suffix)
        return Statement(
            self.sql_create_fk,
            table=Table(table, self.quote_name),
            name=self._fk_constraint_name(model, field, suffix),
            column=Columns(table, [WORKSPACE_COLUMN, field.column], self.quote_name),
            to_table=Table(target, self.quote_name),
            to_column=Columns(target, [WORKSPACE_COLUMN, field.target_field.column], self.quote_name),
            deferrable=self.connection.ops.deferrable_sql(),
        )
