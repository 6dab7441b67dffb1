"""Tables of the problems that each harness tolerates in a skill, and functions that apply them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from skills.skill_format.parser import SkillFlaw, SkillParseResult, SkillProblem

# Problems that the reference validator of Agent Skills does not check.
UNCHECKED_FLAWS = frozenset(
    {SkillFlaw.LICENSE_SHAPE, SkillFlaw.TOOLS_SHAPE, SkillFlaw.METADATA_SHAPE, SkillFlaw.METADATA_NESTED}
)
# Full YAML parsers accept flow style and ignore unknown keys.
YAML_FLAWS = frozenset({SkillFlaw.FLOW_STYLE, SkillFlaw.UNKNOWN_FIELD})
NAME_FLAWS = frozenset(
    {SkillFlaw.NAME_LENGTH, SkillFlaw.NAME_SHAPE, SkillFlaw.NAME_SCRIPT, SkillFlaw.NAME_FOLDER}
)
LENGTH_FLAWS = frozenset({SkillFlaw.DESCRIPTION_LENGTH, SkillFlaw.COMPATIBILITY})
# Problems because of which a value is not kept as written. Users get at least a warning, even if the harness
# ignores the problem.
LOSSY_FLAWS = frozenset({SkillFlaw.METADATA_SHAPE, SkillFlaw.SWITCH_SHAPE})
# Problems of the body, which every harness loads as it is.
BODY_FLAWS = frozenset({SkillFlaw.OUTSIDE_REFERENCE})


@dataclass(frozen=True)
class FlawTolerance:
    """Problems that cause a warning and problems that are ignored.

    With any other problem the skill is dropped.
    """

    warned: frozenset[SkillFlaw]
    ignored: frozenset[SkillFlaw] = frozenset()


@dataclass(frozen=True)
class SkillVerdict:
    kept: bool
    warnings: tuple[SkillProblem, ...] = ()
    reasons: tuple[SkillProblem, ...] = ()  # Why the skill was dropped.


# What the reference validator accepts. The tests list where we are stricter for safety.
STRICT_TOLERANCE = FlawTolerance(warned=UNCHECKED_FLAWS | {SkillFlaw.NAME_SCRIPT})

HARNESS_TOLERANCES: Mapping[str, FlawTolerance] = {
    # Drops skills that violate the specification; unknown keys are allowed.
    "opal": FlawTolerance(warned=UNCHECKED_FLAWS | YAML_FLAWS),
    # Keeps a skill that has a description, with warnings. A missing name is taken from the folder.
    "pi": FlawTolerance(
        warned=UNCHECKED_FLAWS | NAME_FLAWS | LENGTH_FLAWS | LOSSY_FLAWS | {SkillFlaw.NAME_MISSING},
        ignored=YAML_FLAWS,
    ),
    # Keeps everything that can be parsed.
    "moltis": FlawTolerance(
        warned=LOSSY_FLAWS,
        ignored=(UNCHECKED_FLAWS - LOSSY_FLAWS)
        | YAML_FLAWS
        | NAME_FLAWS
        | LENGTH_FLAWS
        | {SkillFlaw.NAME_MISSING, SkillFlaw.DESCRIPTION_MISSING},
    ),
    # Requires name and description. Its skills have nested metadata, as JSON in braces.
    "openclaw": FlawTolerance(
        warned=(UNCHECKED_FLAWS - {SkillFlaw.METADATA_NESTED}) | NAME_FLAWS | LENGTH_FLAWS | LOSSY_FLAWS,
        ignored=YAML_FLAWS | {SkillFlaw.METADATA_NESTED},
    ),
    # All fields are optional, and `allowed-tools` may be a list.
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
    """Return whether the named harness keeps the skill, with warnings and reasons."""
    return apply_tolerance(result, HARNESS_TOLERANCES[harness])


def apply_tolerance(result: SkillParseResult, tolerance: FlawTolerance) -> SkillVerdict:
    """Decide whether a skill is kept with this tolerance. A skill that cannot be parsed is always dropped."""
    relevant = [problem for problem in result.problems if problem.flaw not in tolerance.ignored]
    warned = tolerance.warned | BODY_FLAWS
    warnings = tuple(problem for problem in relevant if problem.flaw in warned)
    reasons = tuple(problem for problem in relevant if problem.flaw not in warned)
    kept = result.skill is not None and not reasons
    return SkillVerdict(kept, warnings, reasons if kept or reasons else result.problems)
