"""Find migration operations that would block or break a product that is running during the migration."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.db import migrations as steps
from django.db.backends.postgresql.base import DatabaseWrapper
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.migration import Migration
from django.db.migrations.operations.base import Operation
from django.db.migrations.operations.fields import FieldOperation
from django.db.migrations.state import ProjectState
from django.db.models import CheckConstraint, ManyToManyField, UniqueConstraint
from django.db.models.expressions import Value
from django.db.models.functions import Now

from core.db.create_models import CreateModels
from core.db.online_migrations import AddCheckOnline, AddIndexOnline, AddUniqueOnline, RunInBatches

OURS = ("personas", "skills", "prompts")
# Small tables, which grow with users and keys but not with requests: a lock on them is short.
SMALL = frozenset({"personas.workspace", "personas.membership", "personas.apikey"})
# Our own operations that add or remove triggers or policies: a short lock, and no row is read. CountWrites
# counts the rows of its table once; it is used for erasures, which are few.
TRIGGERS = frozenset(
    {
        "AppendOnly",
        "AppendOnlyWithErasure",
        "AppendOnlyWithExpiry",
        "AppendOnlyWithRetention",
        "CountWrites",
        "EnableRowLevelSecurity",
    }
)
# Operations that do not affect processes of the previous release.
HARMLESS = (
    steps.AlterModelOptions,
    steps.AlterModelManagers,
    steps.AlterModelTableComment,
    steps.RemoveIndex,
    steps.RenameIndex,
)
# Never connected; used only for the names of PostgreSQL types.
POSTGRES = DatabaseWrapper({"NAME": "nowhere", "OPTIONS": {}})


@dataclass(frozen=True, order=True)
class Unsafe:
    """An unsafe operation of a migration, and the reason."""

    migration: str
    step: str
    reason: str

    def __str__(self) -> str:
        return f"{self.migration}: {self.step}: {self.reason}"


def unsafe_steps() -> list[Unsafe]:
    """Return the unsafe operations of all our migrations, in the order they are applied."""
    loader = MigrationLoader(None)
    state, unsafe = ProjectState(), list[Unsafe]()
    for key in plan(loader):
        migration = loader.graph.nodes[key]
        if key[0] in OURS:
            unsafe += unsafe_in(migration, state.clone())
        state = migration.mutate_state(state, preserve=False)
    return unsafe


def plan(loader: MigrationLoader) -> list[tuple[str, str]]:
    keys: dict[tuple[str, str], None] = {}
    for leaf in loader.graph.leaf_nodes():
        keys |= dict.fromkeys(loader.graph.forwards_plan(leaf))
    return list(keys)


def unsafe_in(migration: Migration, state: ProjectState) -> list[Unsafe]:
    """Return the unsafe operations; a table created by the same migration is empty, so it may be changed."""
    new_tables: set[str] = set()
    unsafe: list[Unsafe] = []
    name = f"{migration.app_label}.{migration.name}"
    for operation in migration.operations:
        for step in flat([operation]):
            if isinstance(step, steps.CreateModel):
                new_tables.add(step.name_lower)
            elif table_of(step) not in new_tables and (
                isinstance(step, ALWAYS) or not is_small(migration, step)
            ):
                unsafe += [
                    Unsafe(name, describe_step(step), reason) for reason in reasons(step, migration, state)
                ]
        operation.state_forwards(migration.app_label, state)
    return unsafe


def flat(operations: list[Operation]) -> Iterator[Operation]:
    """Yield the operations that reach the database; state operations do not."""
    for step in operations:
        if isinstance(step, steps.SeparateDatabaseAndState):
            yield from flat(list(step.database_operations))
        elif isinstance(step, CreateModels):
            yield from step.models
        else:
            yield step


def table_of(step: Any) -> str:
    name = getattr(step, "model_name_lower", None) or getattr(step, "old_name_lower", None)
    return name or str(getattr(step, "name_lower", "")) or str(getattr(step, "model_name", "")).lower()


def is_small(migration: Migration, step: Operation) -> bool:
    return f"{migration.app_label}.{table_of(step)}" in SMALL


def describe_step(step: Operation) -> str:
    parts = [type(step).__name__, table_of(step)]
    if isinstance(step, FieldOperation | steps.RemoveConstraint):
        parts.append(step.name)
    named = getattr(step, "index", None) or getattr(step, "constraint", None)
    return " ".join(filter(None, [*parts, getattr(named, "name", "")]))


# --- the rules -----------------------------------------------------------------------------------------

# These break processes of the previous release, however small the table is.
BREAKING = (steps.RemoveField, steps.RenameField, steps.RenameModel, steps.DeleteModel, steps.AlterModelTable)
ALWAYS = (*BREAKING, steps.AddField, steps.RemoveConstraint, steps.RunPython, steps.RunSQL)


Rule = Callable[[Any, Migration, ProjectState], Iterable[str]]


def reasons(step: Operation, migration: Migration, state: ProjectState) -> Iterable[str]:
    for kinds, rule in RULES:
        if isinstance(step, kinds):
            return rule(step, migration, state)
    return [] if type(step).__name__ in TRIGGERS else ["an unknown step: say why it is safe"]


def always(reason: str) -> Rule:
    return lambda step, migration, state: [reason]


def of_online(step: Operation, migration: Migration, state: ProjectState) -> Iterator[str]:
    if migration.atomic:
        yield "it needs a migration of its own with atomic = False"


def of_removed(step: steps.RemoveConstraint, migration: Migration, state: ProjectState) -> Iterator[str]:
    table = state.models[migration.app_label, step.model_name_lower]
    if isinstance(table.get_constraint_by_name(step.name), UniqueConstraint):
        yield "the release before may say ON CONFLICT with it: drop it a release later"


def of_constraint(step: steps.AddConstraint, migration: Migration, state: ProjectState) -> Iterator[str]:
    if isinstance(step.constraint, CheckConstraint):
        yield "every row is read under a lock: use AddCheckOnline"
    else:
        yield "its index is built under a lock: build a unique index online first"


def of_added(step: steps.AddField, migration: Migration, state: ProjectState) -> Iterator[str]:
    field = step.field
    if isinstance(field, ManyToManyField):
        return
    has_default = field.has_db_default()
    if not field.null and not has_default:
        yield "rows of the release before come without it: give it a db_default or let it be null"
    if field.generated or (
        has_default and not isinstance(field.db_default, Value | Now | int | str | bool | list)
    ):
        yield "the whole table is written anew"
    if is_indexed(field) and not is_small(migration, step):
        yield "its index is built under a lock: add it without, then with AddIndexOnline"


def of_altered(step: steps.AlterField, migration: Migration, state: ProjectState) -> Iterator[str]:
    before, after = before_and_after(step, migration.app_label, state)
    if not only_widened(type_of(before), type_of(after)):
        yield "the whole table is written anew: add a second column, fill it in batches, change over"
    if before.null and not after.null:
        yield "every row is read under a lock: prove it with AddCheckOnline first"
    if is_indexed(after) and not is_indexed(before):
        yield "its index is built under a lock: use AddIndexOnline"
    if getattr(after, "db_constraint", False) and not getattr(before, "db_constraint", True):
        yield "every row is read under a lock: add the link not valid, then prove it"
    if before.column != after.column:
        yield "the release before still asks for the old name"


def before_and_after(step: steps.AlterField, app_label: str, state: ProjectState) -> list[Any]:
    """Return the field before and after; building the models of all tables would take most of a second."""
    after = state.clone()
    step.state_forwards(app_label, after)
    tables = [one.models[app_label, step.model_name_lower] for one in (state, after)]
    fields = [table.fields[step.name].clone() for table in tables]
    for field in fields:
        field.set_attributes_from_name(step.name)
    return fields


def type_of(field: Any) -> str:
    """Return the database type; for a foreign key its target, which determines the type."""
    if field.is_relation:
        return f"{type(field).__name__} to {field.remote_field.model}".lower()
    return str(field.db_type(POSTGRES))


def only_widened(before: str, after: str) -> bool:
    """Return whether only the maximum length grows, for which PostgreSQL reads no row."""
    if before == after:
        return True
    if not before.startswith("varchar("):
        return False
    size = int(before[8:-1])
    return after in ("text", "varchar") or (after.startswith("varchar(") and int(after[8:-1]) >= size)


def is_indexed(field: Any) -> bool:
    return bool(field.db_index or field.unique)


# The first match counts: our own operations are subclasses of Django's.
RULES: list[tuple[Any, Rule]] = [
    (BREAKING, always("the release before asks for it: leave it out of the model, drop it a release later")),
    ((AddIndexOnline, AddUniqueOnline, AddCheckOnline, RunInBatches), of_online),
    (steps.AddField, of_added),
    (steps.AlterField, of_altered),
    (steps.AddIndex, always("writers wait while it is built: use AddIndexOnline")),
    (steps.AddConstraint, of_constraint),
    (steps.RemoveConstraint, of_removed),
    (steps.RunPython, always("one transaction over all rows: use RunInBatches")),
    (steps.RunSQL, always("nobody can tell what it locks: say why it is safe")),
    (HARMLESS, lambda step, migration, state: []),
]
