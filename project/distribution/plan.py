"""Build the SQL statements that put the workspace into keys and spread tables over the nodes of Citus.

Statements name tables by their names and not by their oids: when Citus takes over a table, the old oid
becomes that of a shard.
"""

from dataclasses import dataclass, field

from django.db import connection

from project.distribution.catalog import Catalog, ForeignKey, UniqueKey

# Citus options that the product needs. They are set for the database, so they apply to every role:
# - The workspace scope of row-level security is set with SET LOCAL, which must reach the workers.
# - Append-only tables have triggers, also in the partitions that are created every month.
# - A transaction may write to reference tables after it has written to several shards.
DATABASE_SETTINGS = {
    "citus.propagate_set_commands": "local",
    "citus.enable_unsafe_triggers": "on",
    "citus.multi_shard_modify_mode": "sequential",
}
SEQUENCES_SQL = """
DO $$
DECLARE
    identity record;
    highest bigint;
BEGIN
    FOR identity IN
        SELECT c.relname AS table_name, a.attname AS column_name,
            pg_get_serial_sequence(quote_ident(c.relname), a.attname) AS sequence_name
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attidentity <> ''
        WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
            AND c.relnamespace = current_schema()::regnamespace
    LOOP
        EXECUTE format('SELECT max(%I) FROM %I', identity.column_name, identity.table_name) INTO highest;
        IF highest IS NOT NULL THEN
            EXECUTE format('SELECT setval(%L, greatest(%s, (SELECT last_value FROM %s)))',
                identity.sequence_name, highest, identity.sequence_name);
        END IF;
    END LOOP;
END $$
"""


@dataclass
class Step:
    """A part of the plan: a sentence for the operator and its statements."""

    title: str
    statements: list[str] = field(default_factory=list)


def build_plan(catalog: Catalog) -> list[Step]:
    """Return the steps that are not done yet; an empty list if there is nothing to do."""
    dropped = list_dropped_foreign_keys(catalog)
    steps = [
        Step(
            f"Drop {len(dropped)} foreign keys during the change.",
            [drop_constraint(key.table, key.name) for key in dropped],
        ),
        Step(
            f"Add the workspace to {len(catalog.keys)} primary keys and unique keys.",
            [statement for key in catalog.keys for statement in rebuild_key(key)],
        ),
        *(build_citus_steps(catalog) if catalog.has_citus else ()),
        build_foreign_keys_step(catalog, dropped),
    ]
    steps = [step for step in steps if step.statements]
    if catalog.has_citus and any(step.statements for step in steps):
        steps.append(Step("Set every sequence above the highest ID.", [SEQUENCES_SQL]))
    return steps


def list_dropped_foreign_keys(catalog: Catalog) -> list[ForeignKey]:
    """Return foreign keys that would prevent the change: they are created again at its end.

    Citus takes over all tables that a foreign key leads to. So while the tables are distributed one by one,
    none has a foreign key.
    """
    if not catalog.has_citus:
        return catalog.single_column_keys
    waiting = set(catalog.undistributed_tables)
    single = set(catalog.single_column_keys)
    return [key for key in catalog.foreign_keys if key in single or key.table in waiting]


def rebuild_key(key: UniqueKey) -> list[str]:
    if not key.is_constraint:
        return [f"DROP INDEX {quote_name(key.name)}", key.definition_with_workspace]
    return [
        drop_constraint(key.table, key.name),
        add_constraint(key.table, key.name, key.definition_with_workspace),
    ]


def build_citus_steps(catalog: Catalog) -> list[Step]:
    references, tables = catalog.missing_reference_tables, catalog.undistributed_tables
    if not references and not tables:
        return []
    database = quote_name(str(connection.settings_dict["NAME"]))
    return [
        Step(
            "Set the Citus options of this database.",
            [
                statement
                for name, value in DATABASE_SETTINGS.items()
                for statement in (
                    f"ALTER DATABASE {database} SET {name} = '{value}'",
                    f"SET LOCAL {name} = '{value}'",
                )
            ],
        ),
        Step(
            f"Copy {len(references)} tables to every node: {', '.join(references)}.",
            [f"SELECT create_reference_table('{name}')" for name in references],
        ),
        Step(
            f"Distribute {len(tables)} tables over the nodes by workspace.",
            [
                f"SELECT create_distributed_table('{name}', 'workspace_id'{colocate(catalog, name, tables)})"
                for name in tables
            ],
        ),
    ]


def colocate(catalog: Catalog, name: str, tables: list[str]) -> str:
    """Return the argument that keeps all rows of a workspace on one node."""
    first = next(iter(sorted(catalog.distributed_tables & set(catalog.tenant_tables))), tables[0])
    return "" if name == first else f", colocate_with => '{first}'"


def build_foreign_keys_step(catalog: Catalog, dropped: list[ForeignKey]) -> Step:
    tenants = set(catalog.tenant_tables)
    statements = []
    for key in (*dropped, *catalog.missing_foreign_keys):
        if key.target in tenants and len(key.columns) == 1:
            definition = build_tenant_foreign_key(key.columns[0], key.target)
        else:
            definition = key.definition
        statements.append(add_constraint(key.table, key.name, definition))
    return Step(
        (
            f"Create {len(statements)} foreign keys. Those between tables of a workspace include "
            "the workspace."
        ),
        statements,
    )


def build_tenant_foreign_key(column: str, target: str) -> str:
    """Return a foreign key that the database itself keeps within one workspace."""
    return (
        f"FOREIGN KEY (workspace_id, {quote_name(column)}) "
        f"REFERENCES {quote_name(target)} (workspace_id, id) DEFERRABLE INITIALLY DEFERRED"
    )


def add_constraint(table: str, name: str, definition: str) -> str:
    return f"ALTER TABLE {quote_name(table)} ADD CONSTRAINT {quote_name(name)} {definition}"


def drop_constraint(table: str, name: str) -> str:
    return f"ALTER TABLE {quote_name(table)} DROP CONSTRAINT {quote_name(name)}"


def quote_name(name: str) -> str:
    return str(connection.ops.quote_name(name))
