"""How much each harness minds a skill's problems: a row of data per harness, and one judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from skills.skill_format.parser import SkillFlaw, SkillParseResult, SkillProblem

# The reference does not look at these, so by its verdict the skill is sound.
UNCHECKED_FLAWS = frozenset(
    {SkillFlaw.LICENSE_SHAPE, SkillFlaw.TOOLS_SHAPE, SkillFlaw.METADATA_SHAPE, SkillFlaw.METADATA_NESTED}
)
# Full YAML readers take brackets, and pass over keys they do not know.
YAML_FLAWS = frozenset({SkillFlaw.FLOW_STYLE, SkillFlaw.UNKNOWN_FIELD})
NAME_FLAWS = frozenset(
    {SkillFlaw.NAME_LENGTH, SkillFlaw.NAME_SHAPE, SkillFlaw.NAME_SCRIPT, SkillFlaw.NAME_FOLDER}
)
LENGTH_FLAWS = frozenset({SkillFlaw.DESCRIPTION_LENGTH, SkillFlaw.COMPATIBILITY})
# Kept, but not as written: a person should hear of it whatever the harness thinks.
LOSSY_FLAWS = frozenset({SkillFlaw.METADATA_SHAPE, SkillFlaw.SWITCH_SHAPE})


@dataclass(frozen=True)
class FlawTolerance:
    """Problems that only warn and problems that count for nothing; all others cost the skill its place."""

    warned: frozenset[SkillFlaw]
    ignored: frozenset[SkillFlaw] = frozenset()


@dataclass(frozen=True)
class SkillVerdict:
    kept: bool
    warnings: tuple[SkillProblem, ...] = ()
    reasons: tuple[SkillProblem, ...] = ()  # Why it was dropped.


# The standard to the letter: what the reference validator accepts; the tests list where safety parts us.
STRICT_TOLERANCE = FlawTolerance(warned=UNCHECKED_FLAWS | {SkillFlaw.NAME_SCRIPT})

HARNESS_TOLERANCES: Mapping[str, FlawTolerance] = {
    # Drops what breaks a rule of the standard; "at least name and description" lets other keys be.
    "opal": FlawTolerance(warned=UNCHECKED_FLAWS | YAML_FLAWS),
    # Warns and keeps, as long as there is a description to list; the folder lends a missing name.
    "pi": FlawTolerance(
        warned=UNCHECKED_FLAWS | NAME_FLAWS | LENGTH_FLAWS | LOSSY_FLAWS | {SkillFlaw.NAME_MISSING},
        ignored=YAML_FLAWS,
    ),
    # Keeps whatever can be read.
    "moltis": FlawTolerance(
        warned=LOSSY_FLAWS,
        ignored=(UNCHECKED_FLAWS - LOSSY_FLAWS)
        | YAML_FLAWS
        | NAME_FLAWS
        | LENGTH_FLAWS
        | {SkillFlaw.NAME_MISSING, SkillFlaw.DESCRIPTION_MISSING},
    ),
    # Asks for both name and description; its metadata is JSON in braces.
    "openclaw": FlawTolerance(
        warned=(UNCHECKED_FLAWS - {SkillFlaw.METADATA_NESTED}) | NAME_FLAWS | LENGTH_FLAWS | LOSSY_FLAWS,
        ignored=YAML_FLAWS | {SkillFlaw.METADATA_NESTED},
    ),
    # Every field is optional there, and tools may be a list.
    "claude-code": FlawTolerance(
        warned=(UNCHECKED_FLAWS - {SkillFlaw.TOOLS_SHAPE})
        | NAME_FLAWS
        | LENGTH_FLAWS
        | LOSSY_FLAWS
        | {SkillFlaw.DESCRIPTION_MISSING},
        ignored=YAML_FLAWS | {SkillFlaw.TOOLS_SHAPE, SkillFlaw.NAME_MISSING},
    ),
    "plain": STRICT_TOLERANCE,
}


def evaluate_for_harness(result: SkillParseResult, harness: str) -> SkillVerdict:
    """What the named harness makes of a skill."""
    return apply_tolerance(result, HARNESS_TOLERANCES[harness])


def apply_tolerance(result: SkillParseResult, tolerance: FlawTolerance) -> SkillVerdict:
    """The same by a row of one's own; what could not be read is dropped by every row."""
    relevant = [problem for problem in result.problems if problem.flaw not in tolerance.ignored]
    warnings = tuple(problem for problem in relevant if problem.flaw in tolerance.warned)
    reasons = tuple(problem for problem in relevant if problem.flaw not in tolerance.warned)
    kept = result.skill is not None and not reasons
    return SkillVerdict(kept, warnings, reasons if kept or reasons else result.problems)
