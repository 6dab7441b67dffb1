"""Bulk actions on records by API: one action for many records, all or nothing."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar, TypeVar

from django.urls import URLPattern

from core.db.before_commit import atomic_with_hooks
from personas.api.exception_handler import exception_to_problem
from personas.api.operations import ApiRequest, Operation
from personas.api.problems import FieldError, Problem, ProblemError, json_pointer
from personas.api.record_lookup import RecordLookup
from personas.api.responses import ApiResponse, json_response
from personas.api.schema import Schema, array_schema, integer_schema, object_schema, to_camel_case
from personas.api.views import endpoint
from personas.errors import DomainError
from personas.models import Record
from personas.roles import Permission

R = TypeVar("R", bound=Record)
# The same as the maximum page size of lists.
MAX_BULK_IDS = 200
IDS_SCHEMA: Schema = object_schema(
    {
        "ids": array_schema(
            integer_schema(1),
            most=MAX_BULK_IDS,
            minItems=1,
            uniqueItems=True,
            description="The `id` of each record.",
        )
    },
    title="RecordIds",
)
BULK_NOTE = "Changes all of the records, or none."


class RecordBulk(RecordLookup[R]):
    """Base class of resources with bulk actions."""

    # Whether the resource has the bulk actions archive and restore, like its list page.
    has_bulk_actions: ClassVar[bool] = True

    def archive(self, call: ApiRequest, record: R) -> None:
        raise NotImplementedError

    def unarchive(self, call: ApiRequest, record: R) -> R:
        raise NotImplementedError

    def archive_many(self, call: ApiRequest) -> ApiResponse:
        return self.run_bulk_action(call, self.archive)

    def restore_many(self, call: ApiRequest) -> ApiResponse:
        return self.run_bulk_action(call, self.unarchive)

    def run_bulk_action(self, call: ApiRequest, action: Callable[[ApiRequest, R], object]) -> ApiResponse:
        """Apply the action to the records of the body in one transaction, and return them in that order."""
        ids: list[int] = call.body["ids"]
        with atomic_with_hooks():
            records = self.find_writable_records(call, ids)
            # Sorted by id, so that concurrent requests lock the same records in the same order.
            for record in sorted(records, key=lambda row: row.pk):
                try:
                    action(call, record)
                except DomainError as error:
                    raise ProblemError(
                        locate_problem(exception_to_problem(error), record.pk, ids.index(record.pk))
                    ) from error
        saved = {row.pk: row for row in self.get_queryset(call.workspace).filter(pk__in=ids)}
        return json_response({"items": [self.to_json(saved[pk]) for pk in ids]})

    def find_writable_records(self, call: ApiRequest, ids: Sequence[int]) -> list[R]:
        """Return the records with these ids, in this order. Raise 404 for one that the key may not read."""
        rows = {row.pk: row for row in self.list_visible(call.caller).filter(pk__in=ids)}
        for position, pk in enumerate(ids):
            if pk not in rows:
                detail = f"No {self.singular} “{pk}” in this workspace."
                pointer = json_pointer(["ids", position])
                raise ProblemError(Problem(404, "not_found", detail, [FieldError(detail, pointer)]))
        for row in rows.values():
            self.check_writable(call, row)
        return [rows[pk] for pk in ids]

    def bulk_urls(self) -> list[URLPattern]:
        if not self.has_bulk_actions:
            return []
        return [
            self.bulk_url("archive", self.archive_many, self.write_permission),
            self.bulk_url("restore", self.restore_many, self.write_permission),
        ]

    def bulk_url(
        self, verb: str, run: Callable[[ApiRequest], ApiResponse], permission: Permission
    ) -> URLPattern:
        return endpoint(
            f"{self.name}:{verb}",
            f"{self.name}-{verb}-many",
            post=Operation(
                run,
                f"{verb.capitalize()} several {self.name.replace('-', ' ')}",
                operation_id=f"{verb}{to_camel_case(self.name)}",
                permission=permission,
                touches=self.write_touches,
                body=IDS_SCHEMA,
                body_example={"ids": [12, 15]},
                answer=object_schema(
                    {"items": {"type": "array", "items": self.response_schema()}},
                    title=f"{self.schema_title}List",
                ),
                is_retryable=True,
                refusals={404: "not_found", 409: "refused"},
                note=BULK_NOTE,
                tag=self.name,
            ),
        )


def locate_problem(problem: Problem, pk: int, position: int) -> Problem:
    """Return the problem with the id of the record it is about, and its place in the body."""
    detail = f"“{pk}”: {problem.detail}"
    return replace(problem, detail=detail, errors=[FieldError(detail, json_pointer(["ids", position]))])
