"""How much each harness minds a skill's problems: a row of data per harness, and one judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from skills.parsing import Problem, Reading, Rule

# The reference does not look at these, so by its verdict the skill is sound.
UNASKED = frozenset({Rule.LICENSE_SHAPE, Rule.TOOLS_SHAPE, Rule.METADATA_SHAPE, Rule.METADATA_NESTED})
# Full YAML readers take brackets, and pass over keys they do not know.
READER = frozenset({Rule.FLOW_STYLE, Rule.UNKNOWN_FIELD})
NAMING = frozenset({Rule.NAME_LENGTH, Rule.NAME_SHAPE, Rule.NAME_SCRIPT, Rule.NAME_FOLDER})
LIMITS = frozenset({Rule.DESCRIPTION_LENGTH, Rule.COMPATIBILITY})
# Kept, but not as written: a person should hear of it whatever the harness thinks.
ALTERED = frozenset({Rule.METADATA_SHAPE, Rule.SWITCH_SHAPE})


@dataclass(frozen=True)
class Leniency:
    """Problems that only warn and problems that count for nothing; all others cost the skill its place."""

    warned: frozenset[Rule]
    ignored: frozenset[Rule] = frozenset()


@dataclass(frozen=True)
class Verdict:
    kept: bool
    warnings: tuple[Problem, ...] = ()
    reasons: tuple[Problem, ...] = ()  # Why it was dropped.


# The standard to the letter: what the reference validator accepts, no more and no less.
STRICT = Leniency(warned=UNASKED | {Rule.NAME_SCRIPT})

LENIENCY: Mapping[str, Leniency] = {
    # Drops what breaks a rule of the standard; "at least name and description" lets other keys be.
    "opal": Leniency(warned=UNASKED | READER),
    # Warns and keeps, as long as there is a description to list; the folder lends a missing name.
    "pi": Leniency(warned=UNASKED | NAMING | LIMITS | ALTERED | {Rule.NAME_MISSING}, ignored=READER),
    # Keeps whatever can be read.
    "moltis": Leniency(
        warned=ALTERED,
        ignored=(UNASKED - ALTERED)
        | READER
        | NAMING
        | LIMITS
        | {Rule.NAME_MISSING, Rule.DESCRIPTION_MISSING},
    ),
    # Asks for both name and description; its metadata is JSON in braces.
    "openclaw": Leniency(
        warned=(UNASKED - {Rule.METADATA_NESTED}) | NAMING | LIMITS | ALTERED,
        ignored=READER | {Rule.METADATA_NESTED},
    ),
    # Every field is optional there, and tools may be a list.
    "claude-code": Leniency(
        warned=(UNASKED - {Rule.TOOLS_SHAPE}) | NAMING | LIMITS | ALTERED | {Rule.DESCRIPTION_MISSING},
        ignored=READER | {Rule.TOOLS_SHAPE, Rule.NAME_MISSING},
    ),
    "plain": STRICT,
}


def judge(reading: Reading, harness: str) -> Verdict:
    """What the named harness makes of a skill."""
    return weigh(reading, LENIENCY[harness])


def weigh(reading: Reading, leniency: Leniency) -> Verdict:
    """The same by a row of one's own; what could not be read is dropped by every row."""
    if reading.skill is None:
        return Verdict(kept=False, reasons=reading.problems)
    minded = [problem for problem in reading.problems if problem.rule not in leniency.ignored]
    warnings = tuple(problem for problem in minded if problem.rule in leniency.warned)
    reasons = tuple(problem for problem in minded if problem.rule not in leniency.warned)
    return Verdict(kept=not reasons, warnings=warnings, reasons=reasons)
