"""Find the record of a request by its URL key, within the limits of the API key."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

from django.db.models import QuerySet

from core.db.compiled_query import CompiledQuery, fetch_together
from personas.api.authentication import ApiClient
from personas.api.exception_handler import RecordNotFound, validation_problem
from personas.api.key_limits import check_key_limits, out_of_scope_error
from personas.api.operations import ApiRequest
from personas.api.problems import FieldError, ProblemError
from personas.api.record_schema import RecordSchema
from personas.api_keys.selectors import list_bot_labels
from personas.models import Record, Workspace
from personas.records.services import bind_lock, mark_locked
from personas.selectors import get_first_snapshots

R = TypeVar("R", bound=Record)


class RecordLookup(RecordSchema, Generic[R]):
    """Base class of resources that find records of one kind."""

    # Whether a record is found with a query that is compiled once. This takes a queryset without prefetched
    # querysets, and no `list_visible` of its own.
    has_compiled_lookup: ClassVar[bool] = False

    def get_queryset(self, workspace: Workspace | int) -> QuerySet[R]:
        raise NotImplementedError

    def to_json(self, record: R) -> dict[str, Any]:
        raise NotImplementedError

    def records_json(self, call: ApiRequest, records: Sequence[R]) -> list[dict[str, Any]]:
        """Serialize records for the client of a request. Bots do not get text that others wrote."""
        rows = [self.to_json(record) for record in records]
        if not call.caller.is_bot:
            return rows
        written = get_first_snapshots(records, list_bot_labels(call.caller.key))
        for record, row in zip(records, rows, strict=True):
            snapshot = written.get(record.pk, {})
            for name in self.text_fields:
                row[name] = keep_own_text(row[name], snapshot.get(self.get_field_name(name)))
        return rows

    def list_visible(self, caller: ApiClient) -> QuerySet[R]:
        """Return the records that the client's key may read."""
        # Previews and links look up records of other resources than the operation's own.
        check_key_limits(caller, self.read_touches, is_write=False)
        rows = self.get_queryset(caller.workspace)
        if caller.is_bot:
            rows = self.filter_for_bot(rows, caller)
        if caller.agents is None:
            return rows
        return self.filter_by_agents(rows, caller.agents)

    def filter_for_bot(self, rows: QuerySet[R], caller: ApiClient) -> QuerySet[R]:
        return rows

    def filter_by_agents(self, rows: QuerySet[R], agents: Iterable[str]) -> QuerySet[R]:
        return rows.filter(**{f"{self.agent_path}__in": list(agents)})

    def find_locked(self, call: ApiRequest, key: Any) -> R:
        """Return the record with this URL key as `find_writable` does, and lock it if one query can do it."""
        if not self.has_compiled_lookup or call.caller.agents is not None:
            return self.find_writable(call, key)
        record = self.find_record(call, key, is_locked=True)
        mark_locked(record)
        return record

    def find_record(self, call: ApiRequest, key: Any, *, is_locked: bool = False) -> R:
        if isinstance(key, int) and not 0 < key < (2**31 if self.lookup_field == "number" else 2**63):
            raise RecordNotFound(f"No {self.singular} {key} in this workspace.")
        if self.has_compiled_lookup and call.caller.agents is None and not call.caller.is_bot:
            check_key_limits(call.caller, self.read_touches, is_write=False)
            locks = [bind_lock(self.model, call.workspace, self.lookup_field, key)] if is_locked else []
            records = fetch_together([*locks, self.record_query.bind(call.workspace.pk, key)])[-1]
        else:
            records = list(self.list_visible(call.caller).filter(**{self.lookup_field: key})[:1])
        if not records:
            limits = " within the limits of this key" if call.caller.is_limited else " in this workspace"
            name = key if isinstance(key, int) else f"“{key}”"
            raise RecordNotFound(f"No {self.singular} {name}{limits}.")
        record: R = records[0]
        if record.workspace_id == call.caller.workspace.pk:
            record.workspace = call.caller.workspace
        return record

    @cached_property
    def record_query(self) -> CompiledQuery[[int, Any], R]:
        """The record with this URL key, for keys that may read all records."""
        name = self.lookup_field
        return CompiledQuery(lambda workspace, key: self.get_queryset(workspace).filter(**{name: key}))

    def find_writable(self, call: ApiRequest, key: Any) -> R:
        """Return the record with this URL key, or raise 403 if the client may read but not change it.

        A key that is limited to some agents may not change a record that belongs to no single agent.
        """
        record = self.find_record(call, key)
        self.check_writable(call, record)
        return record

    def check_writable(self, call: ApiRequest, record: R) -> None:
        if (
            call.caller.agents is not None
            and "agent" in self.links
            and getattr(record, "agent_id", 0) is None
        ):
            raise out_of_scope_error()


def keep_own_text(value: Any, written: Any) -> Any:
    """Return text as it is if it is still what a bot wrote, otherwise None. Of steps, keep their states.

    A bot that marks a step writes a revision with the text of others: only the first revision counts.
    """
    if not isinstance(value, list):
        return value if value == written else None
    titles = [step["title"] for step in written or []]
    return [
        step | {"title": step["title"] if step["title"] in titles[index : index + 1] else None}
        for index, step in enumerate(value)
    ]


def check_can_search(call: ApiRequest) -> None:
    """Raise 422 if a bot searches: the matches would tell what is in text that it may not read."""
    if call.caller.is_bot:
        error = FieldError("Bot keys cannot search text. Omit this parameter.", parameter="q")
        raise ProblemError(validation_problem([error]))
