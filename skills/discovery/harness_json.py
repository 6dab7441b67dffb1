"""A harness as plain JSON and back; every fault is named by its place, because workspaces edit their own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from functools import partial
from typing import Any

from skills.discovery.harnesses import HOME, KINDS, PLACES, TAKES, Caps, Harness, Rule

MOST_RULES, MOST_PATHS, MOST_NAMES, MOST_STEPS, LONGEST_PATH = 30, 20, 50, 8, 200
CEILING = Caps()
RULE_KEYS = ("kind", "paths", "at", "take")

Problem = tuple[str, str]
Check = Callable[[Any, str], list[Problem]]


class InvalidHarness(ValueError):
    """Holds every fault as (JSON pointer, words for a person)."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(f"{place or '/'}: {words}" for place, words in problems))
        self.problems = tuple(problems)


def dump(harness: Harness) -> dict[str, Any]:
    """Only lists, texts and numbers, ready for a JSON column."""
    plain = asdict(harness)
    plain["rules"] = [rule | {"paths": list(rule["paths"])} for rule in plain["rules"]]
    return {key: list(value) if isinstance(value, tuple) else value for key, value in plain.items()}


def load(data: Any) -> Harness:
    """What was dumped, or InvalidHarness with all its faults; nothing is mended in silence."""
    if problems := harness_problems(data):
        raise InvalidHarness(problems)
    rules = tuple([Rule(**{**rule, "paths": tuple(rule["paths"])}) for rule in data["rules"]])
    values: dict[str, Any] = {key: tuple(value) for key, value in data.items() if isinstance(value, list)}
    return Harness(**{**data, **values, "rules": rules, "caps": Caps(**data.get("caps", {}))})


def harness_problems(data: Any) -> list[Problem]:
    if not isinstance(data, Mapping):
        return [("", "Expected an object.")]
    missing = [(f"/{key}", "This key is needed.") for key in ("name", "rules") if key not in data]
    return missing + keyed(data, "", HARNESS_CHECKS)


def keyed(data: Mapping[Any, Any], place: str, checks: Mapping[str, Check]) -> list[Problem]:
    """The faults of each key; unknown ones are refused, because a misspelt toggle would do nothing."""
    found: list[Problem] = []
    for key, value in data.items():
        check = checks.get(key) if isinstance(key, str) else None
        found += check(value, f"{place}/{key}") if check else [(f"{place}/{key}", "This key is not known.")]
    return found


def listed(most: int, check: Check, value: Any, place: str) -> list[Problem]:
    if not isinstance(value, list):
        return [(place, "Expected a list.")]
    if len(value) > most:
        return [(place, f"{len(value)} are too many; at most {most} fit.")]
    return [problem for at, each in enumerate(value) for problem in check(each, f"{place}/{at}")]


def one_of(allowed: Sequence[str], value: Any, place: str) -> list[Problem]:
    is_known = isinstance(value, str) and value in allowed
    return [] if is_known else [(place, f"Expected one of {', '.join(allowed)}.")]


def rule_problems(value: Any, place: str) -> list[Problem]:
    if not isinstance(value, Mapping):
        return [(place, "Expected an object.")]
    missing = [(f"{place}/{key}", "This key is needed.") for key in RULE_KEYS[:2] if key not in value]
    return missing + keyed(value, place, RULE_CHECKS)


def caps_problems(value: Any, place: str) -> list[Problem]:
    if not isinstance(value, Mapping):
        return [(place, "Expected an object.")]
    return keyed(value, place, {each.name: partial(cap_problems, each.name) for each in fields(Caps)})


def cap_problems(name: str, value: Any, place: str) -> list[Problem]:
    ceiling = getattr(CEILING, name)
    kinds = (int, float) if isinstance(ceiling, float) else (int,)
    # A truth value counts as a number in Python, but not in JSON.
    is_number = isinstance(value, kinds) and not isinstance(value, bool)
    return [] if is_number and 0 < value <= ceiling else [(place, f"Expected a number up to {ceiling:,}.")]


def text_problem(value: Any) -> str:
    if not isinstance(value, str):
        return "Expected text."
    if len(value) > LONGEST_PATH:
        return f"Longer than {LONGEST_PATH} characters."
    return "" if value.isprintable() else "Holds characters that cannot be shown."


def folder_problem(value: Any) -> str:
    """Going down only: discovery would refuse anything else, but whoever types it should know at once."""
    if problem := text_problem(value):
        return problem
    steps = value.split("/")
    if value.startswith(("/", "~")) or "\\" in value:
        return "Expected a path below the source's root, with / between names."
    if len(steps) > MOST_STEPS:
        return f"More than {MOST_STEPS} names deep."
    return "Names may not be empty, . or .. in a path." if {"", ".", ".."} & set(steps) else ""


def pattern_problem(value: Any) -> str:
    below = value.removeprefix(HOME) if isinstance(value, str) else value
    if problem := folder_problem(below):
        return problem
    *folders, name = below.split("/")
    if below.count("*") > 1 or any("*" in folder and folder != "*" for folder in folders):
        return "One * is allowed, as a folder's whole name or inside the file's name."
    return "[ ] and ? have no meaning here." if set("[]?") & set(name) else ""


def name_problem(value: Any) -> str:
    if problem := text_problem(value):
        return problem
    return "" if value and "/" not in value else "Expected a single name."


def plain_folder_problem(value: Any) -> str:
    return folder_problem(value) or ("A folder takes no *." if "*" in value else "")


def global_folder_problem(value: Any) -> str:
    return "" if value == "" else plain_folder_problem(value)


def one(problem: Callable[[Any], str], value: Any, place: str) -> list[Problem]:
    words = problem(value)
    return [(place, words)] if words else []


RULE_CHECKS: dict[str, Check] = {
    "kind": partial(one_of, KINDS),
    "paths": partial(listed, MOST_PATHS, partial(one, pattern_problem)),
    "at": partial(one_of, PLACES),
    "take": partial(one_of, TAKES),
}
HARNESS_CHECKS: dict[str, Check] = {
    "name": partial(one, name_problem),
    "rules": partial(listed, MOST_RULES, rule_problems),
    "global_folder": partial(one, global_folder_problem),
    "extra_skill_folders": partial(listed, MOST_NAMES, partial(one, plain_folder_problem)),
    "off": partial(listed, len(KINDS), partial(one_of, KINDS)),
    "skip_folders": partial(listed, MOST_NAMES, partial(one, name_problem)),
    "caps": caps_problems,
}
