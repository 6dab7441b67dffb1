"""Export lists as streamed CSV or JSON; CSV cells are protected against formula injection."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any, NamedTuple

from django.db import OperationalError
from django.db.models import QuerySet
from django.http import HttpRequest, StreamingHttpResponse
from django.utils import timezone
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _

from core.request_deadline import check_request_deadline
from personas.models import Workspace

EXPORT_CONTENT_TYPES = {"csv": "text/csv; charset=utf-8", "json": "application/json"}
# Minimum number of characters per chunk of the response, except for the last one.
CHUNK_LENGTH = 32 * 1024
# Larger exports are not useful in a spreadsheet; programs use the paginated API.
MAX_EXPORT_ROWS = 100_000
CHUNK_SIZE = 500
# Spreadsheets evaluate a cell that starts with one of these characters as a formula (CSV injection). The
# last four are the full-width forms of the first four.
FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
# Written at the start of a CSV file: without it, Excel does not read the file as UTF-8.
BYTE_ORDER_MARK = "\ufeff"


class ExportColumn(NamedTuple):
    """A column of an export: its name, and the function that returns its value for a row."""

    name: str
    value: Callable[[Any], object]


def build_export_columns(paths: Iterable[str]) -> list[ExportColumn]:
    """Build columns from attribute paths such as `agent__slug`."""
    return [
        ExportColumn("id" if path == "pk" else path.replace("__", "_"), build_attribute_getter(path))
        for path in paths
    ]


def build_attribute_getter(path: str) -> Callable[[Any], object]:
    names = path.split("__")

    def read(row: Any) -> object:
        value = row
        for step in names:
            value = getattr(value, step, None)
        return value() if callable(value) else value

    return read


def get_export_format(request: HttpRequest) -> str:
    """Return the export format from the query string: csv or json, or empty for the HTML page."""
    value = request.GET.get("format", "")
    return value if value in EXPORT_CONTENT_TYPES else ""


def build_export_response(
    workspace: Workspace,
    name: str,
    file_format: str,
    columns: Sequence[ExportColumn],
    rows: Iterable[Any],
    *,
    limit: int = MAX_EXPORT_ROWS,
) -> StreamingHttpResponse:
    """Stream the rows as a download; at most one chunk of rows is in memory."""
    lines = build_export_stream(file_format, columns, rows, limit=limit)
    response = StreamingHttpResponse(lines, content_type=EXPORT_CONTENT_TYPES[file_format])
    response["Content-Disposition"] = build_export_disposition(workspace, name, file_format)
    response["Cache-Control"] = "no-store"
    return response


def build_export_stream(
    file_format: str, columns: Sequence[ExportColumn], rows: Iterable[Any], *, limit: int = MAX_EXPORT_ROWS
) -> "ExportStream":
    generate = generate_csv if file_format == "csv" else generate_json
    source_rows = iterate_rows(rows)
    return ExportStream(generate(columns, islice(source_rows, limit + 1), limit), source_rows)


def build_export_disposition(workspace: Workspace, name: str, file_format: str) -> str:
    """Return the value of Content-Disposition, with the name of the file."""
    stem = f"{workspace.slug}-{name}-{timezone.localdate():%Y-%m-%d}"
    return content_disposition_header(True, f"{stem}.{file_format}") or "attachment"


def iterate_rows(rows: Iterable[Any]) -> Iterable[Any]:
    """Iterate a queryset in chunks through a server-side cursor.

    The query needs no LIMIT: the caller stops reading at its own limit, and no further chunk is fetched.
    """
    return rows.iterator(chunk_size=CHUNK_SIZE) if isinstance(rows, QuerySet) else rows


class ExportStream:
    """Iterator over the lines of an export, with a `close()` method that Django calls after the response.

    `close()` also closes the row iterator. Closing only the line generator is not enough: if the client
    disconnects before the generator has started, closing it runs none of its code.
    """

    def __init__(self, lines: Iterator[str], rows: Iterable[Any]) -> None:
        self.lines, self.rows = lines, rows

    def __iter__(self) -> Iterator[str]:
        return join_lines(self.lines)

    def close(self) -> None:
        for iterator in (self.lines, self.rows):
            if close := getattr(iterator, "close", None):
                close()


def join_lines(lines: Iterable[str]) -> Iterator[str]:
    """Join lines into chunks of CHUNK_LENGTH characters or more.

    Each chunk that is sent hands the interpreter lock to the server and back. With a chunk per line, an
    export slows down all other requests of the process.
    """
    chunk, length = [], 0
    for line in lines:
        chunk.append(line)
        length += len(line)
        if length >= CHUNK_LENGTH:
            yield "".join(chunk)
            chunk, length = [], 0
    yield "".join(chunk)


def generate_csv(
    columns: Sequence[ExportColumn], rows: Iterable[Any], limit: int = MAX_EXPORT_ROWS
) -> Iterator[str]:
    # Quote all text. Otherwise a spreadsheet that uses another field separator, such as a semicolon, would
    # split cells that contain it.
    writer = csv.writer(PseudoBuffer(), quoting=csv.QUOTE_NONNUMERIC)
    yield BYTE_ORDER_MARK + writer.writerow([column.name for column in columns])
    number = 0
    try:
        for number, row in enumerate(rows):
            # The caller passes up to limit + 1 rows. The extra row is not exported; it only shows that the
            # export is truncated.
            if number == limit:
                yield writer.writerow([format_truncation_note(limit)])
                return
            check_request_deadline()
            yield writer.writerow([format_csv_cell(column.value(row)) for column in columns])
    except OperationalError:
        # Add a note, so that an incomplete file does not look complete.
        yield writer.writerow([format_timeout_note(number)])


def generate_json(
    columns: Sequence[ExportColumn], rows: Iterable[Any], limit: int = MAX_EXPORT_ROWS
) -> Iterator[str]:
    yield '{"rows": ['
    note, number = "", 0
    try:
        for number, row in enumerate(rows):
            if number == limit:
                note = format_truncation_note(limit)
                break
            check_request_deadline()
            record = {column.name: to_json_value(column.value(row)) for column in columns}
            yield f"{',' if number else ''}\n{json.dumps(record, ensure_ascii=False)}"
    except OperationalError:
        note = format_timeout_note(number)
    yield f'\n], "note": {json.dumps(note)}}}\n'


def format_truncation_note(limit: int) -> str:
    return _("Only the first %(count)s rows are included. Filter the list to export the rest.") % {
        "count": f"{limit:,}"
    }


def format_timeout_note(count: int) -> str:
    return _(
        "Only the first %(count)s rows are included, because the export took too "
        "long. Filter the list to export the rest."
    ) % {"count": f"{count:,}"}


class PseudoBuffer:
    """File-like object for `csv.writer`. `write` returns the line, so that `writerow` returns it, too."""

    def write(self, line: str) -> str:
        return line


def format_csv_cell(value: object) -> object:
    """Convert a value to a CSV cell. Text that a spreadsheet would evaluate gets an apostrophe in front."""
    json_value = to_json_value(value)
    if isinstance(json_value, bool):
        return "yes" if json_value else "no"
    if json_value is None or isinstance(json_value, int | float):
        return json_value
    text = format_cell_text(json_value)
    return f"'{text}" if text.startswith(FORMULA_PREFIXES) else text


def format_cell_text(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def to_json_value(value: object) -> Any:
    """Convert a value to JSON data; timestamps are in UTC."""
    if value is None or isinstance(value, str | bool | int | float):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="seconds")
    if isinstance(value, dict):
        return {str(key): to_json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [to_json_value(item) for item in value]
    return str(value)
