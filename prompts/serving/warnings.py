"""The warnings of a served prompt: those of the served version.

Some warnings are about records and files outside the text, which can change while the version stays the same.
For the latest version, they are taken from the report of the last build, which gave the same text.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from personas.models import Content
from prompts.assembly.report import AssemblyReport


class ReportWarnings(NamedTuple):
    """The warnings of a build report."""

    # About the text: what was cut, placeholders without a value.
    text: tuple[str, ...] = ()
    # Files and skills that are left out, for example because they are quarantined.
    withheld: tuple[str, ...] = ()
    # Records without a place in the layout.
    lost: tuple[str, ...] = ()


def load_report_warnings(workspace_id: int, digest: str) -> ReportWarnings:
    """Load the warnings of a build report. If it was erased, there are none."""
    rows = Content.objects.in_workspace(workspace_id).filter(digest=digest)
    data = rows.values_list("data", flat=True).first()
    return parse_report_warnings(json.loads(bytes(data)) if data else {})


def parse_report_warnings(report: Mapping[str, Any]) -> ReportWarnings:
    withheld = tuple(report.get("withheld", ()))
    problems = [problem for problem in report.get("problems", ()) if problem not in withheld]
    return ReportWarnings(
        (*problems, *format_cuts(report.get("cut", {}))), withheld, format_lost(report.get("lost", ()))
    )


def get_assembly_warnings(report: AssemblyReport) -> ReportWarnings:
    cut = {part.name: part.cut for part in report.parts if part.cut}
    return ReportWarnings((*report.problems, *format_cuts(cut)), lost=format_lost(report.lost))


def format_cuts(cut: Mapping[str, int]) -> list[str]:
    return [f"{count} characters of {name} were cut." for name, count in cut.items()]


def format_lost(names: Any) -> tuple[str, ...]:
    return tuple([f"The layout does not use {name}." for name in names])


def combine_warnings(
    own: ReportWarnings, current: ReportWarnings | None, *, is_latest: bool, is_built_for_call: bool
) -> tuple[str, ...]:
    """Combine the warnings of a version with those of the last build (`current`).

    The latest version has the text of the last build, so all warnings are current. The last build says
    nothing about an earlier version: its layout and records may be others.
    """
    if current is None or not is_latest:
        return (*own.text, *own.withheld, *own.lost)
    if is_built_for_call:
        return (*own.text, *current.withheld, *own.lost)
    return (*current.text, *current.withheld, *current.lost)
