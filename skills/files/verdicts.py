"""What each rule set makes of a skill, in words; pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.translation import gettext as _

from skills.files.evaluate import reading_of
from skills.models import FileRevision
from skills.skill_format.tolerance import LENIENCY, judge


@dataclass(frozen=True)
class HarnessVerdict:
    """Kept, kept with a warning, or dropped; and why."""

    harness: str
    word: str
    tone: str
    reasons: tuple[str, ...] = ()


def verdicts_on(revision: FileRevision, harnesses: Iterable[str]) -> list[HarnessVerdict]:
    """By the rule sets that look through the skill's source."""
    reading = reading_of(revision.head, revision.problems)
    found = []
    for name in harnesses:
        if name in LENIENCY:
            verdict = judge(reading, name)
            said = verdict.warnings if verdict.kept else verdict.reasons
            word, tone = words(verdict.kept, bool(verdict.warnings))
            found.append(HarnessVerdict(name, word, tone, tuple(problem.message for problem in said)))
    return found


def words(is_kept: bool, is_warned: bool) -> tuple[str, str]:
    if not is_kept:
        return _("Dropped"), "error"
    return (_("Kept with a warning"), "warning") if is_warned else (_("Kept"), "success")
