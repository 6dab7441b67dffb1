"""Erase the values of calls that contain erased text. Ledger rows keep only their salted digests."""

import json
from collections.abc import Iterable
from typing import Any

from django.db.models import BinaryField, Func, IntegerField, Q, QuerySet, Sum, Value

from personas.contents.models import erase_content_rows
from personas.models import Erasure, Workspace
from prompts.models import CallContent

# Up to this many bytes of call data are searched in the request. If there is more, a worker searches it.
MAX_SEARCHED_AT_ONCE = 32 * 1024 * 1024
# How many rows one statement searches.
BATCH_SIZE = 500
# In characters. Shorter lines are not searched for, because they occur in too many unrelated calls.
MIN_LINE_LENGTH = 12


class BytesPosition(Func):
    """The position of the first bytes in the second, or 0."""

    template = "POSITION(%(expressions)s)"
    arg_joiner = " IN "
    output_field = IntegerField()

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> tuple[str, Any]:
        swapped = self.copy()
        swapped.set_source_expressions(self.get_source_expressions()[::-1])
        return swapped.as_sql(
            compiler, connection, template="INSTR(%(expressions)s)", arg_joiner=", ", **context
        )


def is_search_small(workspace: Workspace | int) -> bool:
    """Whether the call data of the workspace is little enough to be searched in the request."""
    size = list_readable_contents(workspace).aggregate(size=Sum("size"))["size"] or 0
    return size <= MAX_SEARCHED_AT_ONCE


def list_readable_contents(workspace: Workspace | int) -> QuerySet[CallContent]:
    return CallContent.objects.in_workspace(workspace).filter(erased_at=None)


def erase_call_data_containing(workspace: Workspace | int, texts: Iterable[str]) -> int:
    """Erase all values of calls that contain one of the texts; return their number.

    Short values of a call are stored together, so one that contains the text takes the others with it.
    """
    needles = build_call_needles(texts)
    if not needles:
        return 0
    condition = Q()
    for number in range(len(needles)):
        condition |= Q(**{f"position_{number}__gt": 0})
    positions = {
        f"position_{number}": BytesPosition(Value(needle, BinaryField()), "data")
        for number, needle in enumerate(needles)
    }
    erased, last_id = 0, 0
    rows = list_readable_contents(workspace).order_by("pk")
    while batch := list(rows.filter(pk__gt=last_id).values_list("pk", flat=True)[:BATCH_SIZE]):
        last_id = batch[-1]
        matches = rows.filter(pk__in=batch).annotate(**positions).filter(condition)
        erased += erase_content_rows(rows.filter(pk__in=list(matches.values_list("pk", flat=True))))
    return erased


def build_call_needles(texts: Iterable[str]) -> list[bytes]:
    """Return the texts, and their long lines, as they occur in JSON strings."""
    wanted = dict.fromkeys(texts)
    lines = [line.strip() for text in wanted for line in text.splitlines()]
    wanted |= dict.fromkeys([line for line in lines if len(line) >= MIN_LINE_LENGTH])
    return [json.dumps(text, ensure_ascii=False)[1:-1].encode() for text in wanted]


def erase_pending_call_data(workspace: Workspace | int, key: int) -> None:
    """Search the call data for an erasure that left this to a worker. A second call changes nothing."""
    rows = Erasure.objects.in_workspace(workspace).filter(pk=key)
    texts = rows.values_list("pending_texts", flat=True).first()
    if texts:
        erase_call_data_containing(workspace, texts)
        rows.update(pending_texts=None)
