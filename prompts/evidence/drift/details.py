"""Details of a report: the loaded file, and the lines in which it differs from the served text. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from core.text.patience import diff_sequences

# Further changed blocks are counted, but not stored.
MAX_BLOCKS = 20


class ChangedBlock(NamedTuple):
    """Lines of the loaded text that replace lines of the served text. Lines are counted from 1.

    Either count can be 0. Its line is then the one before which lines were added or removed.
    """

    line: int
    line_count: int
    served_line: int
    served_line_count: int


@dataclass(frozen=True)
class LineChanges:
    """The blocks in which a loaded text differs from a served one, and the fetch or version compared with."""

    blocks: Sequence[ChangedBlock]
    # How many changed blocks are not stored.
    more: int
    # The compared version, and the ledger row of the compared text; None if that was the version's own text.
    number: int
    ledger_id: int | None = None

    @property
    def first_line(self) -> int:
        return self.blocks[0].line

    @property
    def is_one_line(self) -> bool:
        """Whether one line was changed, added or removed."""
        block = self.blocks[0]
        return len(self.blocks) == 1 and max(block.line_count, block.served_line_count) == 1


class LoadedSkill(NamedTuple):
    """A skill file that a bot has loaded.

    The digest is the salted one if the file is that of a version of the prompt, otherwise as reported.
    """

    name: str
    digest: str
    is_known: bool


@dataclass(frozen=True)
class ReportDetails:
    """What a bot says about a report, and what the comparison found when the report arrived."""

    path: str = ""
    reason: str = ""
    session: str = ""
    # A BotStatus.
    status: str = ""
    changes: LineChanges | None = None
    # None if the bot did not report its skills.
    skills: Sequence[LoadedSkill] | None = None


def find_line_changes(
    served: str, loaded: str, *, number: int, ledger_id: int | None = None
) -> LineChanges | None:
    """Compare two texts line by line. Return None if they are equal."""
    blocks = [
        ChangedBlock(block.j1 + 1, block.j2 - block.j1, block.i1 + 1, block.i2 - block.i1)
        for block in diff_sequences(served.split("\n"), loaded.split("\n"))
        if block.kind == "changed"
    ]
    if not blocks:
        return None
    return LineChanges(blocks[:MAX_BLOCKS], max(0, len(blocks) - MAX_BLOCKS), number, ledger_id)


def report_details_json(details: ReportDetails) -> dict[str, Any]:
    return asdict(details)


def parse_report_details(stored: Mapping[str, Any]) -> ReportDetails:
    changes, skills = stored["changes"], stored["skills"]
    return ReportDetails(
        stored["path"],
        stored["reason"],
        stored["session"],
        stored["status"],
        changes=parse_line_changes(changes) if changes else None,
        skills=None if skills is None else [LoadedSkill(*one) for one in skills],
    )


def parse_line_changes(stored: Mapping[str, Any]) -> LineChanges:
    blocks = [ChangedBlock(*block) for block in stored["blocks"]]
    return LineChanges(blocks, stored["more"], stored["number"], stored["ledger_id"])
