"""Context files as they were found: their state, what speaks against them, and every revision they had."""

from django.db.models import Q, QuerySet
from django.http import Http404
from django.urls import URLPattern

from personas.api.operations import Call, Operation
from personas.api.pagination import FIELDS, PAGING, page_answered, page_of_rows
from personas.api.responses import Answer, answered
from personas.api.schema import choice, flag, line, moment, page_of, slug
from personas.api.views import endpoint
from skills.api_helpers import row_or_404
from skills.discovery.harnesses import KINDS
from skills.files.reasons import GRAVITY
from skills.files.schema import (
    FILE,
    FULL_FILE,
    FULL_REVISION,
    REVISION,
    file_told,
    full_file_told,
    revision_told,
    visible_to,
)
from skills.files.selectors import files_of, revisions_of, words_of
from skills.models import ContextFile, FileRevision, FileState

TAG = "context-files"


def index(call: Call) -> Answer:
    rows = visible(call)
    for name, column in (("state", "state"), ("source", "source__slug"), ("kind", "file_kind")):
        if said := call.query.get(name):
            rows = rows.filter(**{column: said})
    if since := call.query.get("updated_since"):
        rows = rows.filter(changed_at__gte=since)
    if words := call.query.get("q", "").strip():
        rows = rows.filter(path__icontains=words)
    if "is_waiting" in call.query:
        waiting = Q(is_settled=False, state__in=GRAVITY, source__archived_at=None)
        rows = rows.filter(waiting if call.query["is_waiting"] else ~waiting)
    page = page_of_rows(rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""))
    return page_answered(call, page, [file_told(file) for file in page.rows])


def read(call: Call, key: int) -> Answer:
    return given(call, found(call, key))


def history(call: Call, key: int) -> Answer:
    rows = revisions_of(found(call, key)).select_related("content").defer("content__data")
    page = page_of_rows(
        rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""), newest_first=True
    )
    return page_answered(call, page, [revision_told(row) for row in page.rows])


def read_revision(call: Call, key: int, number: int) -> Answer:
    row = revision_or_404(found(call, key), number)
    words = words_of(row)
    return answered({**revision_told(row), "text": None if words.is_erased else words.text})


# --- plumbing ------------------------------------------------------------------------------------------


def visible(call: Call) -> QuerySet[ContextFile]:
    return visible_to(call.caller, files_of(call.workspace))


def found(call: Call, key: int) -> ContextFile:
    return row_or_404(
        visible(call).select_related("source__workspace", "newest", "agreed", "in_force__content"), key
    )


def given(call: Call, file: ContextFile) -> Answer:
    return answered(full_file_told(call, file))


def revision_or_404(file: ContextFile, number: int) -> FileRevision:
    rows = revisions_of(file).select_related("content").filter(number=number)
    row = rows.first() if 0 < number < 2**31 else None
    if row is None:
        raise Http404
    return row


urlpatterns: list[URLPattern] = [
    endpoint(
        "context-files",
        "context-files-list",
        get=Operation(
            index,
            "List context files and found skills",
            bots=True,
            answer=page_of(FILE),
            query={
                "q": line(200, least=1, description="Part of a path."),
                "state": choice(FileState.values),
                "source": slug(description="Only those of this source."),
                "kind": choice(KINDS),
                "is_waiting": flag(description="Whether someone should look at it: the inbox."),
                "updated_since": moment(),
                "fields": FIELDS,
                **PAGING,
            },
            tag=TAG,
        ),
    ),
    endpoint(
        "context-files/<int:key>",
        "context-files-one",
        get=Operation(
            read,
            "A context file, with its findings and the words in force",
            bots=True,
            answer=FULL_FILE,
            tag=TAG,
        ),
    ),
    endpoint(
        "context-files/<int:key>/revisions",
        "context-files-revisions",
        get=Operation(
            history,
            "All that a file has said, newest first",
            bots=True,
            answer=page_of(REVISION),
            query=PAGING,
            tag=TAG,
        ),
    ),
    endpoint(
        "context-files/<int:key>/revisions/<int:number>",
        "context-files-revision",
        get=Operation(
            read_revision,
            "A revision with its words",
            answer=FULL_REVISION,
            note="Words in quarantine are shown too, so no bot's key opens this.",
            tag=TAG,
        ),
    ),
]
