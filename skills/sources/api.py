"""Sources: where files are found, who lets them in, and each look at them."""

from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.urls import URLPattern

from personas.agents.services import create_named
from personas.api.authentication import Caller
from personas.api.operations import Call, Operation
from personas.api.pagination import PAGING, page_answered, page_of_rows
from personas.api.record_resource import RecordResource
from personas.api.responses import Answer, answered, moment_told
from personas.api.schema import Shape, choice, line, listed, moment, nullable, page_of, shape, slug, whole
from personas.api.views import endpoint
from personas.errors import Invalid
from personas.models import Workspace
from personas.records.services import Values, restore_record
from personas.roles import Permission
from skills.api_helpers import TEXT, refuse_limited, sources_read_by
from skills.discovery.harnesses import HARNESSES
from skills.models import Source, SourceKind
from skills.refresh import api as refresh_api
from skills.refresh.runs import request_refresh
from skills.refresh.source_changes import look_anew
from skills.sources.selectors import grants_of, readers_beyond, sources_of, states_of
from skills.tasks import dispatch
from skills.uploads.api import push_urls

GRANT = shape({"path": TEXT, "note": TEXT})
NO_SCHEDULE = "Pushed files are looked at when they come; leave the minutes out."
MORE: dict[str, Shape] = {
    "slug": slug(),
    "kind": choice(SourceKind.values, default=str(SourceKind.FOLDER), description="Set once, for good."),
    "grant": nullable(line(1_000, least=1, description="The path that operators granted; null if pushed.")),
    "harnesses": listed(
        choice(HARNESSES), minItems=1, uniqueItems=True, default=list(HARNESSES), description="Rule sets."
    ),
    "refresh_minutes": nullable(
        whole(1, 10_080, description="How often workers look; null: only when someone asks.")
    ),
}


class Sources(RecordResource[Source]):
    """A key that is limited to agents sees what those read, and changes none of it here."""

    model = Source
    name, one = "sources", "source"
    searched = ("label", "slug", "folder", "grant__path")
    fixed = ("slug", "kind")
    optional = ("slug",)
    more = MORE
    shown = {
        "files": refresh_api.COUNTS | {"description": "How many of its files are in which state."},
        "looked_at": nullable(moment()),
        "last_run": nullable(whole(1)),
    }
    agent_path = "agent_contexts__agent__slug"
    write = Permission.MANAGE_SOURCES
    filters = {"kind": choice(SourceKind.values)}

    def rows(self, workspace: Workspace) -> QuerySet[Source]:
        return sources_of(workspace)

    def visible(self, caller: Caller) -> QuerySet[Source]:
        rows: QuerySet[Source] = self.rows(caller.workspace)
        if caller.agents is None:
            return rows
        return rows.filter(pk__in=sources_read_by(caller.workspace, caller.agents))

    def narrowed(self, rows: QuerySet[Source], call: Call) -> QuerySet[Source]:
        kind = call.query.get("kind")
        return rows.filter(source_kind=kind) if kind else rows

    # --- values -----------------------------------------------------------------------------------------

    def paged(self, call: Call, rows: QuerySet[Source]) -> Answer:
        page = page_of_rows(rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""))
        self.count_files(call.workspace, page.rows)
        return page_answered(call, page, [self.told(row) for row in page.rows])

    def count_files(self, workspace: Workspace, rows: Iterable[Any]) -> None:
        states = states_of(workspace, rows)
        for row in rows:
            row.file_states = states[row.pk]

    def also(self, record: Any) -> dict[str, Any]:
        if not hasattr(record, "file_states"):
            self.count_files(record.workspace, [record])
        return {
            "files": record.file_states,
            "looked_at": record.looked_at and moment_told(record.looked_at),
            "last_run": record.last_run_id,
        }

    def value_told(self, record: Source, name: str) -> Any:
        if name == "kind":
            return record.source_kind
        if name == "grant":
            return record.grant.path if record.grant else None
        return super().value_told(record, name)

    def value_read(self, call: Call, name: str, said: Any, expected: Shape) -> Any:
        if name != "grant" or said is None:
            return super().value_read(call, name, said, expected)
        grant = grants_of(call.workspace).filter(path=said).first()
        if grant is None:
            raise LookupError(said)
        return grant

    def values(self, call: Call, *, is_new: bool = False) -> tuple[Values, str]:
        refuse_limited(call)
        values, message = super().values(call, is_new=is_new)
        if "kind" in values:
            values["source_kind"] = values.pop("kind")
        return values, message

    def completed(self, record: Source, values: Values) -> Values:
        if record.source_kind == SourceKind.PUSHED:
            refuse_schedule(values)
        refuse_lost_readers(record, values.get("harnesses", record.harnesses))
        return values

    # --- verbs ------------------------------------------------------------------------------------------

    @transaction.atomic
    def create(self, call: Call, values: Values, message: str) -> Source:
        """With a first look at it, as on the page."""
        if values.get("source_kind") == SourceKind.PUSHED:
            refuse_schedule(values)
            values["refresh_minutes"] = None
        source = create_named(Source, call.workspace, values, by=call.actor, message=message)
        dispatch(request_refresh(source, cause="created", by=call.actor))
        return source

    @transaction.atomic
    def change(self, call: Call, key: Any) -> Answer:
        before = self.find(call, key)
        super().change(call, key)
        return self.looked_anew(call, before)

    @transaction.atomic
    def go_back(self, call: Call, key: Any, number: int) -> Answer:
        refuse_limited(call)
        before = self.find(call, key)
        super().go_back(call, key, number)
        return self.looked_anew(call, before)

    def looked_anew(self, call: Call, before: Source) -> Answer:
        """What was changed about a source holds for its files at once."""
        after = self.fresh(before)
        if after.revision != before.revision and not after.is_archived:
            dispatch(look_anew(after, cause="edited", by=call.actor))
        return self.given(self.fresh(before))

    def remove(self, call: Call, key: Any) -> Answer:
        refuse_limited(call)
        return super().remove(call, key)

    @transaction.atomic
    def bring_back(self, call: Call, record: Source) -> Source:
        refuse_limited(call)
        restored = restore_record(record, by=call.actor)
        dispatch(look_anew(restored, cause="edited", by=call.actor))
        return restored

    def refresh(self, call: Call, key: str) -> Answer:
        source = self.find(call, key)
        run = request_refresh(source, cause="person", by=call.actor)
        dispatch(run)
        return answered(refresh_api.run_told(run, source), 202, Location=refresh_api.run_address(run, source))

    def list_runs(self, call: Call, key: str) -> Answer:
        return refresh_api.index(call, self.find(call, key))

    def read_run(self, call: Call, key: str, number: int) -> Answer:
        return refresh_api.read(call, self.find(call, key), number)

    def more_urls(self) -> list[URLPattern]:
        reading: dict[str, Any] = {"bots": True, "tag": self.name}
        at = "sources/<slug:key>"
        listing = Operation(
            self.list_runs,
            "Looks at a source, newest first",
            answer=page_of(refresh_api.RUN),
            query=PAGING,
            **reading,
        )
        one = Operation(
            self.read_run, "A look, with what it left out", answer=refresh_api.FULL_RUN, **reading
        )
        refresh = Operation(
            self.refresh,
            "Ask for a look at a source",
            permission=Permission.EDIT,
            answer=refresh_api.RUN,
            status=202,
            is_retryable=True,
            tag=self.name,
        )
        return [
            endpoint(f"{at}:refresh", "sources-refresh", post=refresh),
            endpoint(f"{at}/runs", "sources-runs", get=listing),
            endpoint(f"{at}/runs/<int:number>", "sources-run", get=one),
            *push_urls(self.find),
        ]


def refuse_schedule(values: Values) -> None:
    if values.get("refresh_minutes"):
        raise Invalid.on("refresh_minutes", NO_SCHEDULE)


def refuse_lost_readers(source: Source, harnesses: list[str]) -> None:
    """An agent would go on by rules whose files nobody looks for any more."""
    if lost := readers_beyond(source, harnesses):
        named = ", ".join(f"{one.agent} ({one.harness})" for one in lost[:5])
        raise Invalid.on("harnesses", f"Still in use: {named}. Change that at the agents first.")


def grants(call: Call) -> Answer:
    refuse_limited(call)
    page = page_of_rows(
        grants_of(call.workspace), limit=call.query["limit"], cursor=call.query.get("cursor", "")
    )
    return page_answered(call, page, [{"path": row.path, "note": row.note} for row in page.rows])


urlpatterns = [
    *Sources().urls(),
    endpoint(
        "source-grants",
        "source-grants-list",
        get=Operation(
            grants,
            "Folders that operators granted, to make sources of",
            permission=Permission.MANAGE_SOURCES,
            budget="read",
            answer=page_of(GRANT),
            query=PAGING,
            tag="sources",
        ),
    ),
]
