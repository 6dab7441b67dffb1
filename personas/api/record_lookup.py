"""Find the record of a request by its URL key, within the limits of the API key."""

from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar, cast

from django.db.models import QuerySet

from personas.api.authentication import ApiClient
from personas.api.exception_handler import RecordNotFound, validation_problem
from personas.api.key_limits import check_key_limits, out_of_scope_error
from personas.api.operations import ApiRequest
from personas.api.problems import FieldError, ProblemError
from personas.api.record_schema import RecordSchema
from personas.api_keys.selectors import list_bot_labels
from personas.models import Record, Workspace
from personas.records.fast_write import LOCKED_ON_LOAD, lock_and_load_record
from personas.selectors import get_first_snapshots

R = TypeVar("R", bound=Record)


class RecordLookup(RecordSchema, Generic[R]):
    """Base class of resources that find records of one kind."""

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
        # The check for the operation is not enough: previews and links look up records of other resources.
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
        """Return the record with this URL key as `find_writable` does, for an edit in this transaction.

        Records of most kinds are locked by that edit. Others are locked here, in the round trip that loads
        them.
        """
        caller = call.caller
        if caller.agents is not None or caller.is_bot or self.model.kind not in LOCKED_ON_LOAD:
            return self.find_writable(call, key)
        self.check_key(key)
        check_key_limits(caller, self.read_touches, is_write=False)
        model = cast("type[R]", self.model)
        records = lock_and_load_record(model, self.get_queryset, call.workspace, self.lookup_field, key)
        return self.require_found(call, key, records)

    def find_record(self, call: ApiRequest, key: Any) -> R:
        self.check_key(key)
        records = list(self.list_visible(call.caller).filter(**{self.lookup_field: key})[:1])
        return self.require_found(call, key, records)

    def check_key(self, key: Any) -> None:
        """Raise 404 for a number that the column cannot have."""
        if isinstance(key, int) and not 0 < key < (2**31 if self.lookup_field == "number" else 2**63):
            raise RecordNotFound(f"No {self.singular} {key} in this workspace.")

    def require_found(self, call: ApiRequest, key: Any, records: Sequence[R]) -> R:
        """Return the first of these records, or raise 404 if there is none."""
        if not records:
            limits = " within the limits of this key" if call.caller.is_limited else " in this workspace"
            name = key if isinstance(key, int) else f"“{key}”"
            raise RecordNotFound(f"No {self.singular} {name}{limits}.")
        record = records[0]
        if record.workspace_id == call.caller.workspace.pk:
            record.workspace = call.caller.workspace
        return record

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
