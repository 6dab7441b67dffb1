"""How much each harness minds a skill's problems: a row of data per harness, and one judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from skills.skill_format.parser import Flaw, Problem, Reading

# The reference does not look at these, so by its verdict the skill is sound.
UNASKED = frozenset({Flaw.LICENSE_SHAPE, Flaw.TOOLS_SHAPE, Flaw.METADATA_SHAPE, Flaw.METADATA_NESTED})
# Full YAML readers take brackets, and pass over keys they do not know.
READER = frozenset({Flaw.FLOW_STYLE, Flaw.UNKNOWN_FIELD})
NAMING = frozenset({Flaw.NAME_LENGTH, Flaw.NAME_SHAPE, Flaw.NAME_SCRIPT, Flaw.NAME_FOLDER})
LIMITS = frozenset({Flaw.DESCRIPTION_LENGTH, Flaw.COMPATIBILITY})
# Kept, but not as written: a person should hear of it whatever the harness thinks.
ALTERED = frozenset({Flaw.METADATA_SHAPE, Flaw.SWITCH_SHAPE})


@dataclass(frozen=True)
class Leniency:
    """Problems that only warn and problems that count for nothing; all others cost the skill its place."""

    warned: frozenset[Flaw]
    ignored: frozenset[Flaw] = frozenset()


@dataclass(frozen=True)
class Verdict:
    kept: bool
    warnings: tuple[Problem, ...] = ()
    reasons: tuple[Problem, ...] = ()  # Why it was dropped.


# The standard to the letter: what the reference validator accepts; the tests list where safety parts us.
STRICT = Leniency(warned=UNASKED | {Flaw.NAME_SCRIPT})

LENIENCY: Mapping[str, Leniency] = {
    # Drops what breaks a rule of the standard; "at least name and description" lets other keys be.
    "opal": Leniency(warned=UNASKED | READER),
    # Warns and keeps, as long as there is a description to list; the folder lends a missing name.
    "pi": Leniency(warned=UNASKED | NAMING | LIMITS | ALTERED | {Flaw.NAME_MISSING}, ignored=READER),
    # Keeps whatever can be read.
    "moltis": Leniency(
        warned=ALTERED,
        ignored=(UNASKED - ALTERED)
        | READER
        | NAMING
        | LIMITS
        | {Flaw.NAME_MISSING, Flaw.DESCRIPTION_MISSING},
    ),
    # Asks for both name and description; its metadata is JSON in braces.
    "openclaw": Leniency(
        warned=(UNASKED - {Flaw.METADATA_NESTED}) | NAMING | LIMITS | ALTERED,
        ignored=READER | {Flaw.METADATA_NESTED},
    ),
    # Every field is optional there, and tools may be a list.
    "claude-code": Leniency(
        warned=(UNASKED - {Flaw.TOOLS_SHAPE}) | NAMING | LIMITS | ALTERED | {Flaw.DESCRIPTION_MISSING},
        ignored=READER | {Flaw.TOOLS_SHAPE, Flaw.NAME_MISSING},
    ),
    "plain": STRICT,
}


def judge(reading: Reading, harness: str) -> Verdict:
    """What the named harness makes of a skill."""
    return weigh(reading, LENIENCY[harness])


def weigh(reading: Reading, leniency: Leniency) -> Verdict:
    """The same by a row of one's own; what could not be read is dropped by every row."""
    minded = [problem for problem in reading.problems if problem.flaw not in leniency.ignored]
    warnings = tuple(problem for problem in minded if problem.flaw in leniency.warned)
    reasons = tuple(problem for problem in minded if problem.flaw not in leniency.warned)
    kept = reading.skill is not None and not reasons
    return Verdict(kept, warnings, reasons if kept or reasons else reading.problems)
