"""Serialize a harness to JSON and validate JSON that users edited, with a JSON pointer for each problem."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from functools import partial
from typing import Any

from skills.discovery.harnesses import (
    FILE_KINDS,
    HOME_PREFIX,
    MATCH_MODES,
    RULE_SCOPES,
    DiscoveryCaps,
    DiscoveryRule,
    Harness,
)

MAX_RULES, MAX_PATHS, MAX_NAMES, MAX_PATH_DEPTH, MAX_PATH_LENGTH = 30, 20, 50, 8, 200
MAX_CAPS = DiscoveryCaps()
RULE_KEYS = ("kind", "paths", "at", "take")

HarnessProblem = tuple[str, str]
HarnessCheck = Callable[[Any, str], list[HarnessProblem]]


class InvalidHarness(ValueError):
    """The JSON is not a valid harness. `problems` are pairs of JSON pointer and message."""

    def __init__(self, problems: Sequence[HarnessProblem]) -> None:
        super().__init__("; ".join(f"{pointer or '/'}: {message}" for pointer, message in problems))
        self.problems = tuple(problems)


def harness_to_json(harness: Harness) -> dict[str, Any]:
    """Convert a harness to dicts, lists, strings and numbers for a JSON column."""
    data = asdict(harness)
    data["rules"] = [rule | {"paths": list(rule["paths"])} for rule in data["rules"]]
    return {key: list(value) if isinstance(value, tuple) else value for key, value in data.items()}


def parse_harness(data: Any) -> Harness:
    """Parse the output of `harness_to_json`, or raise InvalidHarness with all problems.

    Invalid values are never corrected.
    """
    if problems := list_harness_problems(data):
        raise InvalidHarness(problems)
    rules = tuple([DiscoveryRule(**{**rule, "paths": tuple(rule["paths"])}) for rule in data["rules"]])
    values: dict[str, Any] = {key: tuple(value) for key, value in data.items() if isinstance(value, list)}
    return Harness(**{**data, **values, "rules": rules, "caps": DiscoveryCaps(**data.get("caps", {}))})


def list_harness_problems(data: Any) -> list[HarnessProblem]:
    if not isinstance(data, Mapping):
        return [("", "Expected an object.")]
    missing = [(f"/{key}", "This key is required.") for key in ("name", "rules") if key not in data]
    return missing + list_key_problems(data, "", HARNESS_CHECKS)


def list_key_problems(
    data: Mapping[Any, Any], pointer: str, checks: Mapping[str, HarnessCheck]
) -> list[HarnessProblem]:
    """Check each key. Unknown keys are errors, because a misspelt option would have no effect."""
    problems: list[HarnessProblem] = []
    for key, value in data.items():
        check = checks.get(key) if isinstance(key, str) else None
        problems += check(value, f"{pointer}/{key}") if check else [(f"{pointer}/{key}", "Unknown key.")]
    return problems


def list_item_problems(max_items: int, check: HarnessCheck, value: Any, pointer: str) -> list[HarnessProblem]:
    if not isinstance(value, list):
        return [(pointer, "Expected a list.")]
    if len(value) > max_items:
        return [(pointer, f"At most {max_items} items are allowed, not {len(value)}.")]
    return [problem for index, item in enumerate(value) for problem in check(item, f"{pointer}/{index}")]


def list_choice_problems(allowed: Sequence[str], value: Any, pointer: str) -> list[HarnessProblem]:
    is_known = isinstance(value, str) and value in allowed
    return [] if is_known else [(pointer, f"Expected one of {', '.join(allowed)}.")]


def list_rule_problems(value: Any, pointer: str) -> list[HarnessProblem]:
    if not isinstance(value, Mapping):
        return [(pointer, "Expected an object.")]
    missing = [(f"{pointer}/{key}", "This key is required.") for key in RULE_KEYS[:2] if key not in value]
    return missing + list_key_problems(value, pointer, RULE_CHECKS)


def list_caps_problems(value: Any, pointer: str) -> list[HarnessProblem]:
    if not isinstance(value, Mapping):
        return [(pointer, "Expected an object.")]
    return list_key_problems(
        value,
        pointer,
        {cap.name: partial(list_cap_value_problems, cap.name) for cap in fields(DiscoveryCaps)},
    )


def list_cap_value_problems(name: str, value: Any, pointer: str) -> list[HarnessProblem]:
    ceiling = getattr(MAX_CAPS, name)
    kinds = (int, float) if isinstance(ceiling, float) else (int,)
    # bool is a subclass of int in Python, but not a number in JSON.
    is_number = isinstance(value, kinds) and not isinstance(value, bool)
    return [] if is_number and 0 < value <= ceiling else [(pointer, f"Expected a number up to {ceiling:,}.")]


def find_text_problem(value: Any) -> str:
    if not isinstance(value, str):
        return "Expected text."
    if len(value) > MAX_PATH_LENGTH:
        return f"Longer than {MAX_PATH_LENGTH} characters."
    return "" if value.isprintable() else "Contains unprintable characters."


def find_path_problem(value: Any) -> str:
    """Return a message if the path is invalid, for example if it leads out of the source; otherwise "".

    Discovery refuses such paths too. This check tells the user while editing the rules.
    """
    if problem := find_text_problem(value):
        return problem
    names = value.split("/")
    if value.startswith(("/", "~")) or "\\" in value:
        return "Expected a path below the source's root, with names separated by /."
    if len(names) > MAX_PATH_DEPTH:
        return f"More than {MAX_PATH_DEPTH} levels deep."
    return "Names in a path must not be empty, . or .." if {"", ".", ".."} & set(names) else ""


def find_pattern_problem(value: Any) -> str:
    below = value.removeprefix(HOME_PREFIX) if isinstance(value, str) else value
    if problem := find_path_problem(below):
        return problem
    *folders, name = below.split("/")
    if below.count("*") > 1 or any("*" in folder and folder != "*" for folder in folders):
        return "One * is allowed, as a whole folder name or within the file name."
    return "[ ] and ? are not supported." if set("[]?") & set(name) else ""


def find_single_name_problem(value: Any) -> str:
    if problem := find_text_problem(value):
        return problem
    return "" if value and "/" not in value else "Expected a single name."


def find_plain_folder_problem(value: Any) -> str:
    return find_path_problem(value) or ("A folder must not contain *." if "*" in value else "")


def find_global_folder_problem(value: Any) -> str:
    return "" if value == "" else find_plain_folder_problem(value)


def list_value_problems(find_problem: Callable[[Any], str], value: Any, pointer: str) -> list[HarnessProblem]:
    message = find_problem(value)
    return [(pointer, message)] if message else []


RULE_CHECKS: dict[str, HarnessCheck] = {
    "kind": partial(list_choice_problems, FILE_KINDS),
    "paths": partial(list_item_problems, MAX_PATHS, partial(list_value_problems, find_pattern_problem)),
    "at": partial(list_choice_problems, RULE_SCOPES),
    "take": partial(list_choice_problems, MATCH_MODES),
}
HARNESS_CHECKS: dict[str, HarnessCheck] = {
    "name": partial(list_value_problems, find_single_name_problem),
    "rules": partial(list_item_problems, MAX_RULES, list_rule_problems),
    "global_folder": partial(list_value_problems, find_global_folder_problem),
    "extra_skill_folders": partial(
        list_item_problems, MAX_NAMES, partial(list_value_problems, find_plain_folder_problem)
    ),
    "off": partial(list_item_problems, len(FILE_KINDS), partial(list_choice_problems, FILE_KINDS)),
    "skip_folders": partial(
        list_item_problems, MAX_NAMES, partial(list_value_problems, find_single_name_problem)
    ),
    "caps": list_caps_problems,
}
