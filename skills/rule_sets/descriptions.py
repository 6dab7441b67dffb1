"""Descriptions, for users, of the discovery rules and limits (caps) of a harness. Pure functions."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.text.sizes import format_size
from skills.discovery.harnesses import HOME_PREFIX, DiscoveryCaps, DiscoveryRule, Harness

KIND_LABELS = {
    "base": _("System prompt"),
    "append": _("System prompt addition"),
    "persona": _("Persona file"),
    "context": _("Context file"),
    "workspace": _("Workspace file"),
    "skill": _("Skill"),
}
SCOPE_LABELS = {
    "each": _("In each folder from the root down to the working directory"),
    "project": _("Only in the working directory"),
}
MATCH_MODE_LABELS = {"all": _("All that exist"), "first": _("The first that exists")}
CAP_LABELS = {
    "file_bytes": _("Size of one file"),
    "total_bytes": _("Size of all files"),
    "files": _("Files"),
    "folder_files": _("Files per folder"),
    "folder_entries": _("Entries per folder"),
    "entries": _("Entries checked"),
    "depth": _("Folder depth"),
    "seconds": _("Search duration"),
}

BYTE_CAPS = ("file_bytes", "total_bytes")


@dataclass(frozen=True)
class RuleDescription:
    """One discovery rule as a row of the table that users see."""

    kind: str
    paths: tuple[str, ...]
    location: str
    match_mode: str
    is_off: bool


@dataclass(frozen=True)
class CapDescription:
    """One discovery limit (cap), and whether the workspace lowered it."""

    label: str
    # Includes the unit.
    value: str
    is_lowered: bool


def describe_rules(harness: Harness) -> list[RuleDescription]:
    """Describe the rules in order. Extra skill folders come last, because they have the lowest precedence."""
    extra = [f"{folder}/*/SKILL.md" for folder in harness.extra_skill_folders]
    rows = [describe_rule(rule, describe_rule_scope(rule), harness) for rule in harness.rules]
    if extra:
        rows.append(
            describe_rule(DiscoveryRule("skill", tuple(extra)), gettext("Below the source's root"), harness)
        )
    return rows


def describe_rule(rule: DiscoveryRule, location: str, harness: Harness) -> RuleDescription:
    is_choice = len(rule.paths) > 1 or any("*" in path for path in rule.paths)
    match_mode = str(MATCH_MODE_LABELS[rule.take]) if is_choice else ""
    return RuleDescription(
        str(KIND_LABELS[rule.kind]), rule.paths, location, match_mode, rule.kind in harness.off
    )


def describe_rule_scope(rule: DiscoveryRule) -> str:
    if all(path.startswith(HOME_PREFIX) for path in rule.paths):
        return gettext("In the global folder")
    has_home_path = any(path.startswith(HOME_PREFIX) for path in rule.paths)
    return (
        gettext("%(where)s, or in the global folder") % {"where": SCOPE_LABELS[rule.at]}
        if has_home_path
        else str(SCOPE_LABELS[rule.at])
    )


def describe_caps(caps: DiscoveryCaps) -> list[CapDescription]:
    max_caps = DiscoveryCaps()
    values = [(name, getattr(caps, name)) for name in CAP_LABELS]
    return [
        CapDescription(str(CAP_LABELS[name]), format_cap(name, value), value != getattr(max_caps, name))
        for name, value in values
    ]


def format_cap(name: str, value: float) -> str:
    """Format a limit: sizes and durations have a unit, the others are counts."""
    if name in BYTE_CAPS:
        return format_size(int(value))
    number = f"{value:,.1f}".removesuffix(".0")
    return gettext("%(count)s seconds") % {"count": number} if name == "seconds" else number


def describe_harness_files(harness: Harness) -> str:
    """Return the file names that the rules match, joined by commas. A name with `*` includes its folder."""
    return ", ".join(
        remove_duplicates(shorten_rule_path(path) for rule in harness.rules for path in rule.paths)
    )


def shorten_rule_path(path: str) -> str:
    *folders, name = path.split("/")
    if name == "SKILL.md":
        return gettext("skills")
    return f"{folders[-1]}/{name}" if "*" in name and folders else name


def remove_duplicates(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
