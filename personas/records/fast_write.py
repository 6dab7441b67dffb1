"""Locks and writes of records: which of them take a fast path, and how.

Services and API modules call plain functions; the choice is made here. The fast paths save round trips and
the time to build SQL. docs/decisions/0021-compiled-queries.md explains them, and
docs/decisions/0024-faster-writes-and-pages.md has what they gain.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from django.db.models import QuerySet, UniqueConstraint

from core.db.before_commit import get_current_transaction
from core.db.fast import CompiledQuery, WriteBatch, fetch_together
from personas.agents.models import list_agent_ids_using
from personas.models import Record, Workspace
from personas.records.models import AGENT_ID_SOURCES, AgentIdSource
from personas.tenancy.models import WorkspaceOwned

R = TypeVar("R", bound=Record)
# Kinds of records that agents refer to by a foreign key with the name of the kind.
LINKED_KINDS = frozenset({"identity", "soul", "user_profile"})
# By kind: the fields of a record that can change which agents use it. For kinds that are not listed, the
# agents are queried again after every edit.
USAGE_FIELDS: dict[str, tuple[str, ...]] = {**dict.fromkeys(LINKED_KINDS, ()), "memory": ("agent",)}
# Kinds of records that the API locks and loads in one round trip. This is possible because the queryset of
# their API resource prefetches nothing, and is the same for all keys that are not limited to some agents.
LOCKED_ON_LOAD = LINKED_KINDS | {"memory"}

# --- locks ---------------------------------------------------------------------------------------------

# The records that `lock_and_load_record` returned, by transaction.
_locked_records: WeakKeyDictionary[object, list[Record]] = WeakKeyDictionary()


@cache
def get_lock_query(model: type[R], field: str = "pk") -> CompiledQuery[[int, Any], R]:
    """Return the query that locks a record. `field` identifies it in the workspace."""

    def build(workspace: int, value: Any) -> QuerySet[R]:
        rows = model.objects.in_workspace(workspace).filter(**{field: value})
        return rows.select_for_update(of=("self",), no_key=True)

    return CompiledQuery(build)


@cache
def get_load_query(
    list_rows: Callable[[Workspace | int], QuerySet[R]], field: str
) -> CompiledQuery[[int, Any], R]:
    return CompiledQuery(lambda workspace, value: list_rows(workspace).filter(**{field: value}))


def lock_and_load_record(
    model: type[R],
    list_rows: Callable[[Workspace | int], QuerySet[R]],
    workspace: Workspace,
    field: str,
    value: Any,
) -> list[R]:
    """Lock the record whose `field` has this value, and load it with `list_rows`, in one round trip.

    In this transaction, `lock_record` returns the loaded record as it is.
    """
    queries = (get_lock_query(model, field), get_load_query(list_rows, field))
    records: list[R] = fetch_together([query.bind(workspace.pk, value) for query in queries])[-1]
    if (transaction := get_current_transaction()) is not None:
        _locked_records.setdefault(transaction, []).extend(records)
    return records


def is_locked(record: Record) -> bool:
    """Whether this instance was loaded by `lock_and_load_record` in the current transaction."""
    transaction = get_current_transaction()
    records = _locked_records.get(transaction, []) if transaction else []
    return any(one is record for one in records)


# --- writes --------------------------------------------------------------------------------------------


class RecordWrite(Generic[R]):
    """The write of a new or edited record with Django's `save()`; revision and audit event follow in a batch.

    Create it before the record is changed: it finds out which agents used the record until then.
    """

    # Whether the caller must save the record in a savepoint, because a constraint may be violated.
    needs_savepoint = True

    def __init__(self, record: R, values: dict[str, Any], *, has_new_key: bool) -> None:
        self.record, self.values, self.has_new_key = record, values, has_new_key
        self.previous = record.revision, record.updated_at
        self.batch = WriteBatch()
        self.agent_ids = self.list_current_agents()

    def list_current_agents(self) -> list[int]:
        return self.record.agent_ids() if self.record.pk else []

    def save(self) -> None:
        """Validate and save the record and its child rows."""
        self.validate()
        self.record.save()
        self.record.save_children(self.values)

    def validate(self) -> None:
        self.record.full_clean(validate_unique=self.has_new_key, validate_constraints=self.has_new_key)

    def reset_revision(self) -> None:
        """Set the previous revision number again, because the content is unchanged.

        The second UPDATE is acceptable: edits without a change are rare.
        """
        self.record.revision, self.record.updated_at = self.previous
        self.record.save(update_fields=["revision", "updated_at"])

    def send_batch(self) -> None:
        self.batch.send()

    def list_affected_agents(self, before: dict[str, Any] | None, after: dict[str, Any]) -> list[int]:
        """Return the ids of the agents that used the record before the write or use it now."""
        fields = USAGE_FIELDS.get(self.record.kind)
        if before is not None and fields is not None and all(before[name] == after[name] for name in fields):
            return self.agent_ids
        return [*self.agent_ids, *self.record.agent_ids()]


class FastRecordWrite(RecordWrite[R]):
    """An edit whose UPDATE is sent with the batch, together with the query for the agents.

    There is no savepoint: a constraint is violated only by a key, which the edit does not set.
    """

    needs_savepoint = False

    def __init__(self, record: R, values: dict[str, Any]) -> None:
        super().__init__(record, values, has_new_key=False)

    def list_current_agents(self) -> list[int]:
        return [] if self.record.kind in LINKED_KINDS else super().list_current_agents()

    def save(self) -> None:
        self.validate()

    def reset_revision(self) -> None:
        self.record.revision, self.record.updated_at = self.previous

    def send_batch(self) -> None:
        record = self.record
        record.check_foreign_links()
        self.batch.update(record)
        if record.kind not in LINKED_KINDS:
            self.batch.send()
            return
        sources = [source for source in AGENT_ID_SOURCES if record.kind in source.kinds]
        queries = [get_agents_query(record.kind), *[get_usage_query(one, record.kind) for one in sources]]
        own, *others = self.batch.send([query.bind(record.workspace_id, record.pk) for query in queries])
        self.agent_ids = own
        for source, rows in zip(sources, others, strict=True):
            self.agent_ids += source.read_ids(rows)


def start_write(record: R, values: dict[str, Any], *, is_new: bool) -> RecordWrite[R]:
    """Choose how a record is written. Without a new key or child rows, it is written with its revision."""
    has_new_key = is_new or has_changed_key(record, values)
    has_own_save = type(record).save is not WorkspaceOwned.save
    if has_new_key or has_own_save or type(record).save_children is not Record.save_children:
        return RecordWrite(record, values, has_new_key=has_new_key)
    return FastRecordWrite(record, values)


def has_changed_key(record: Record, values: dict[str, Any]) -> bool:
    """Whether the edit sets a field that a constraint or unique field of the record covers."""
    constraints = record._meta.constraints
    if not all(isinstance(one, UniqueConstraint) and one.fields and not one.condition for one in constraints):
        # A check, a condition or an expression may cover any field.
        return True
    names = {name for one in constraints if isinstance(one, UniqueConstraint) for name in one.fields}
    names |= {field.name for field in record._meta.concrete_fields if field.unique and not field.primary_key}
    return any(name in values for name in names)


@cache
def get_agents_query(kind: str) -> CompiledQuery[[int, int], int]:
    return CompiledQuery(partial(list_agent_ids_using, kind))


@cache
def get_usage_query(source: AgentIdSource, kind: str) -> CompiledQuery[[int, int], Any]:
    return CompiledQuery(partial(source.list_rows, kind))
