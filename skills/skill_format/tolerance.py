"""Tables of the problems that each harness tolerates in a skill, and functions that apply them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from skills.skill_format.parser import SkillFlaw, SkillParseResult, SkillProblem
from skills.skill_format.rules import MAX_NAME_LENGTH, is_valid_skill_name

# Problems that the reference validator of Agent Skills does not check.
UNCHECKED_FLAWS = frozenset(
    {SkillFlaw.LICENSE_SHAPE, SkillFlaw.TOOLS_SHAPE, SkillFlaw.METADATA_SHAPE, SkillFlaw.METADATA_NESTED}
)
# Harnesses with a full YAML parser accept flow style and ignore unknown keys.
YAML_FLAWS = frozenset({SkillFlaw.FLOW_STYLE, SkillFlaw.UNKNOWN_FIELD})
# Problems with the name that some harnesses tolerate.
NAME_FLAWS = frozenset({SkillFlaw.NAME_SCRIPT, SkillFlaw.NAME_FOLDER})
# Problems with the name that no harness tolerates: a model could not load the skill by such a name, and the
# name could imitate other text of the prompt.
INVALID_NAME_FLAWS = frozenset({SkillFlaw.NAME_LENGTH, SkillFlaw.NAME_SHAPE})
INVALID_FOLDER_NAME_MESSAGE = (
    "The skill has no name, and its folder's name is not a valid name. Use at most 64 lowercase "
    "letters, digits and single hyphens."
)
DEFAULT_HARNESS = "plain"
LENGTH_FLAWS = frozenset({SkillFlaw.DESCRIPTION_LENGTH, SkillFlaw.COMPATIBILITY})
# Problems with values that are not kept as written. Users get at least a warning, even if the harness ignores
# the problem.
LOSSY_FLAWS = frozenset({SkillFlaw.METADATA_SHAPE, SkillFlaw.SWITCH_SHAPE})
# Problems in the body only cause a warning, because every harness loads the body as it is.
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
    # Keeps everything that can be parsed and has a valid name.
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


def get_judging_harnesses(rules: str, layout: str) -> tuple[str, ...]:
    """Return the harnesses by whose rules the skills of an agent are judged.

    `rules` is the harness by which the agent reads its source, empty if it reads none. If its layout is the
    prompt of a harness, the rules of that harness apply as well, because its prompts follow them.
    """
    names = [name for name in (rules, layout) if name in HARNESS_TOLERANCES]
    return tuple(dict.fromkeys(names)) or (DEFAULT_HARNESS,)


def evaluate_for_harnesses(result: SkillParseResult, harnesses: Iterable[str]) -> SkillVerdict:
    """Return whether all these harnesses keep the skill, with the warnings and reasons of each, once."""
    verdicts = [evaluate_for_harness(result, name) for name in harnesses]
    warnings = dict.fromkeys(problem for verdict in verdicts for problem in verdict.warnings)
    reasons = dict.fromkeys(problem for verdict in verdicts for problem in verdict.reasons)
    return SkillVerdict(all(verdict.kept for verdict in verdicts), tuple(warnings), tuple(reasons))


def find_invalid_folder_name(result: SkillParseResult) -> tuple[SkillProblem, ...]:
    """Return a problem if the folder's name serves as the name of the skill and is not valid."""
    name = result.skill.name if result.skill else ""
    is_valid = not name or (len(name) <= MAX_NAME_LENGTH and is_valid_skill_name(name))
    if is_valid or any(problem.flaw in INVALID_NAME_FLAWS for problem in result.problems):
        return ()
    return (SkillProblem("name", INVALID_FOLDER_NAME_MESSAGE, 1, SkillFlaw.NAME_SHAPE),)


def apply_tolerance(result: SkillParseResult, tolerance: FlawTolerance) -> SkillVerdict:
    """Decide whether a skill is kept with this tolerance. A skill that cannot be parsed is always dropped."""
    problems = (*result.problems, *find_invalid_folder_name(result))
    relevant = [problem for problem in problems if problem.flaw not in tolerance.ignored]
    warned = tolerance.warned | BODY_FLAWS
    warnings = tuple(problem for problem in relevant if problem.flaw in warned)
    reasons = tuple(problem for problem in relevant if problem.flaw not in warned)
    kept = result.skill is not None and not reasons
    return SkillVerdict(kept, warnings, reasons if kept or reasons else result.problems)
