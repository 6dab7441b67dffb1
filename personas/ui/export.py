"""Rows as a file: CSV that no spreadsheet takes for formulas, or JSON; written while it is read."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any, NamedTuple

from django.db.models import QuerySet
from django.http import HttpRequest, StreamingHttpResponse
from django.utils import timezone
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _

from personas.models import Workspace

FORMATS = {"csv": "text/csv; charset=utf-8", "json": "application/json"}
# A file of more rows is nothing that a person opens; programs page through the API.
MOST = 100_000
CHUNK = 500
# Spreadsheets run what begins like this, wide forms of the signs among them.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
# Without it spreadsheets read UTF-8 as something else.
MARK = "\ufeff"


class Column(NamedTuple):
    """A column of a file: its name, and what stands there for a row."""

    name: str
    value: Callable[[Any], object]


def columns_of(paths: Iterable[str]) -> list[Column]:
    """Columns by the path of an attribute; `agent__slug` is the agent's slug."""
    return [Column("id" if path == "pk" else path.replace("__", "_"), reader(path)) for path in paths]


def reader(path: str) -> Callable[[Any], object]:
    steps = path.split("__")

    def read(row: Any) -> object:
        value = row
        for step in steps:
            value = getattr(value, step, None)
        return value() if callable(value) else value

    return read


def file_asked(request: HttpRequest) -> str:
    """The format that the address asks for; empty for a page."""
    said = request.GET.get("format", "")
    return said if said in FORMATS else ""


def file_answer(
    workspace: Workspace,
    name: str,
    file_format: str,
    columns: Sequence[Column],
    rows: Iterable[Any],
    *,
    most: int = MOST,
) -> StreamingHttpResponse:
    """The rows as a download; at no time more of them than a chunk are held."""
    write = as_csv if file_format == "csv" else as_json
    read = streamed(rows)
    lines = Lines(write(columns, islice(read, most + 1), most), read)
    answer = StreamingHttpResponse(lines, content_type=FORMATS[file_format])
    stem = f"{workspace.slug}-{name}-{timezone.localdate():%Y-%m-%d}"
    answer["Content-Disposition"] = content_disposition_header(True, f"{stem}.{file_format}")
    answer["Cache-Control"] = "no-store"
    return answer


def streamed(rows: Iterable[Any]) -> Iterable[Any]:
    """No slice: behind a cursor it costs nothing to stop reading, and prefetching allows none."""
    return rows.iterator(chunk_size=CHUNK) if isinstance(rows, QuerySet) else rows


class Lines:
    """The lines of a file; whoever goes away before the last of them, or the first, ends the reading too."""

    def __init__(self, lines: Iterator[str], rows: Iterable[Any]) -> None:
        self.lines, self.rows = lines, rows

    def __iter__(self) -> Iterator[str]:
        return self.lines

    def close(self) -> None:
        for read in (self.lines, self.rows):
            if close := getattr(read, "close", None):
                close()


def as_csv(columns: Sequence[Column], rows: Iterable[Any], most: int = MOST) -> Iterator[str]:
    # Every text is quoted, so that a spreadsheet that parts cells at other signs does not part these.
    writer = csv.writer(Echo(), quoting=csv.QUOTE_NONNUMERIC)
    yield MARK + writer.writerow([column.name for column in columns])
    for number, row in enumerate(rows):
        # One more than the file takes is read, by which it knows that there are more.
        if number == most:
            yield writer.writerow([cut_note(most)])
            return
        yield writer.writerow([cell(column.value(row)) for column in columns])


def as_json(columns: Sequence[Column], rows: Iterable[Any], most: int = MOST) -> Iterator[str]:
    yield '{"rows": ['
    for number, row in enumerate(rows):
        if number == most:
            yield f'\n], "note": {json.dumps(cut_note(most))}}}\n'
            return
        said = {column.name: plain(column.value(row)) for column in columns}
        yield f"{',' if number else ''}\n{json.dumps(said, ensure_ascii=False)}"
    yield '\n], "note": ""}\n'


def cut_note(most: int) -> str:
    return _("Cut after %(count)s rows: narrow the list down to get the rest.") % {"count": f"{most:,}"}


class Echo:
    """What a CSV writer writes to: it hands each line straight back."""

    def write(self, line: str) -> str:
        return line


def cell(value: object) -> object:
    """A value as it may stand in a spreadsheet: numbers as they are, text that runs nothing."""
    said = plain(value)
    if isinstance(said, bool):
        return "yes" if said else "no"
    if said is None or isinstance(said, int | float):
        return said
    text = in_words(said)
    return f"'{text}" if text.startswith(FORMULA) else text


def in_words(said: Any) -> str:
    if isinstance(said, list) and all(isinstance(one, str) for one in said):
        return ", ".join(said)
    return said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)


def plain(value: object) -> Any:
    """A value as JSON has it; moments in UTC, for a file is read anywhere."""
    if value is None or isinstance(value, str | bool | int | float):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="seconds")
    if isinstance(value, dict):
        return {str(key): plain(said) for key, said in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(one) for one in value]
    return str(value)
