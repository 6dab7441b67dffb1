"""Files pushed to a source by programs: one, many, or one taken away again."""

from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.urls import URLPattern

from personas.api.etags import refuse_unless
from personas.api.exception_handler import invalid
from personas.api.operations import Call, Operation
from personas.api.pagination import PAGING, page_answered, page_of_rows
from personas.api.problems import FieldError, ProblemError
from personas.api.responses import Answer, answered, moment_told
from personas.api.schema import Shape, flag, listed, moment, page_of, shape, whole
from personas.api.views import endpoint
from personas.errors import Invalid
from personas.roles import Permission
from skills.api_helpers import TEXT
from skills.archives import Bundle, read_files
from skills.archives.paths import LONGEST_PATH, check_path
from skills.discovery import Refusal
from skills.discovery.filesystem import Refused
from skills.discovery.harnesses import Caps
from skills.models import PushedFile, RefreshRun, Source
from skills.refresh.api import RUN, run_address, run_told
from skills.tasks import dispatch
from skills.uploads.outcome_api import OUTCOME, outcome_of, refusals_placed
from skills.uploads.services import BadBundle, push_bundle, push_file, remove_pushed

Find = Callable[[Call, str], Source]
CAPS = Caps()
BASE64 = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
# Either of them, never both: an object has just as many fields as it needs.
CONTENT: dict[str, Shape] = {
    "text": {"type": "string", "maxLength": CAPS.file_bytes * 4},
    "base64": {"type": "string", "maxLength": CAPS.file_bytes * 4, "pattern": BASE64},
}
PATH: Shape = {"type": "string", "minLength": 1, "maxLength": LONGEST_PATH}
ONE_FILE = shape(CONTENT, required=(), minProperties=1, maxProperties=1)
FILES = listed(
    shape({"path": PATH, **CONTENT}, required=["path"], minProperties=2, maxProperties=2),
    most=CAPS.files,
    minItems=1,
)
MANY = shape(
    {
        "files": FILES,
        "is_complete": flag(default=False, description="Let go of files that are not named here."),
    },
    required=["files"],
)
PUSHED = shape({"path": TEXT, "size": whole(), "digest": TEXT, "pushed_at": moment()})
NOTE = (
    "Give each file's text, or its bytes in base64. A file that is refused keeps what it said before; "
    "`quarantined` names those that no prompt will hold."
)


def push_urls(find: Find) -> list[URLPattern]:
    """For sources as `find` knows them: a limited key pushes only where one of its agents reads."""
    pushing = Pushing(find)
    writes: dict[str, Any] = {"permission": Permission.EDIT, "bots": True, "status": 202, "tag": "sources"}
    return [
        endpoint(
            "sources/<slug:key>/files",
            "sources-files",
            get=Operation(
                pushing.index,
                "Files that were pushed to a source",
                bots=True,
                answer=page_of(PUSHED),
                query=PAGING,
                tag="sources",
            ),
        ),
        endpoint(
            "sources/<slug:key>/files:push",
            "sources-files-push",
            post=Operation(
                pushing.push_many,
                "Push files to a source",
                body=MANY,
                body_example={"files": [{"path": "AGENTS.md", "text": "Be kind.\n"}], "is_complete": False},
                answer=OUTCOME,
                is_retryable=True,
                note=NOTE,
                **writes,
            ),
        ),
        endpoint(
            "sources/<slug:key>/files/<path:path>",
            "sources-file",
            put=Operation(
                pushing.push_one,
                "Push one file to a source",
                body=ONE_FILE,
                body_example={"text": "Be kind.\n"},
                answer=OUTCOME,
                refusals={412: "precondition_failed"},
                note="A push says what the file is now. If-Match is heeded where it is sent.",
                **writes,
            ),
            delete=Operation(
                pushing.remove,
                "Take a pushed file away",
                answer=shape({"run": RUN}),
                refusals={412: "precondition_failed"},
                note="Its revisions stay for the record. If-Match is heeded where it is sent.",
                **writes,
            ),
        ),
    ]


class Pushing:
    """The verbs, bound to how sources are found."""

    def __init__(self, find: Find) -> None:
        self.find = find

    def index(self, call: Call, key: str) -> Answer:
        rows = pushed_files(self.find(call, key)).select_related("content").defer("content__data")
        page = page_of_rows(rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""))
        return page_answered(call, page, [pushed_told(row) for row in page.rows])

    def push_many(self, call: Call, key: str) -> Answer:
        source = self.find(call, key)
        sent = [(said["path"], bytes_of(said)) for said in call.body["files"]]
        paths = [path for path, _ in sent]
        bundle = read_files(sent)
        try:
            run = push_bundle(source, bundle, replace=call.body.get("is_complete", False), by=call.actor)
        except BadBundle as error:
            raise ProblemError(unsound(error, paths)) from error
        return accepted(source, run, bundle, refusals_placed(clashing(run, bundle), paths))

    def push_one(self, call: Call, key: str, path: str) -> Answer:
        source, data = self.find(call, key), bytes_of(call.body)
        refuse_unless_unchanged(call, source, path)
        try:
            run = push_file(source, path, data, by=call.actor)
        except Invalid as error:
            said = [FieldError(one, parameter="path") for words in error.errors.values() for one in words]
            raise ProblemError(invalid(said)) from error
        return accepted(source, run, Bundle(((path, data),), ()), [])

    def remove(self, call: Call, key: str, path: str) -> Answer:
        source = self.find(call, key)
        try:
            check_path(path)
        except Refused as why:
            raise Http404 from why
        refuse_unless_unchanged(call, source, path)
        run = remove_pushed(source, path, by=call.actor)
        dispatch(run)
        return answered({"run": run_told(run, source)}, 202, Location=run_address(run, source))


def accepted(source: Source, run: RefreshRun, bundle: Bundle, refused: list[dict[str, Any]]) -> Answer:
    """Stored, and a look is on its way; what it will find is told already."""
    dispatch(run)
    lost = {one["path"] for one in refused}
    taken = {path: data for path, data in bundle.files if path not in lost}
    said = {"run": run_told(run, source), "taken": len(taken), "refused": refused}
    return answered(said | outcome_of(source, taken), 202, Location=run_address(run, source))


def clashing(run: RefreshRun, bundle: Bundle) -> list[Refusal]:
    """What was refused of this push: in itself, or beside what the source holds."""
    named = {path for path, _ in bundle.files} | {refusal.path for refusal in bundle.refusals}
    return [Refusal(**one) for one in run.refusals if one["path"] in named]


def unsound(error: BadBundle, paths: list[str]) -> Any:
    placed = refusals_placed(error.refusals, paths)
    return invalid([FieldError(one["reason"], one["pointer"]) for one in placed])


def refuse_unless_unchanged(call: Call, source: Source, path: str) -> None:
    """Only for callers who say what they have seen."""
    if call.if_match is None:
        return
    row = (
        pushed_files(source).filter(path=path).select_related("content").first()
        if path.isprintable()
        else None
    )
    refuse_unless(f'"{row.content.digest}"' if row else '""', call.if_match)


def pushed_files(source: Source) -> QuerySet[PushedFile]:
    return PushedFile.objects.in_workspace(source.workspace_id).filter(source=source)


def pushed_told(row: PushedFile) -> dict[str, Any]:
    return {
        "path": row.path,
        "size": row.content.size,
        "digest": row.content.digest,
        "pushed_at": moment_told(row.pushed_at),
    }


def bytes_of(said: Mapping[str, str]) -> bytes:
    return said["text"].encode() if "text" in said else b64decode(said["base64"])
