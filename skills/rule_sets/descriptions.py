"""A harness's rules in words that people read; pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from skills.discovery.harnesses import HOME, Caps, Harness, Rule

KIND_WORDS = {
    "base": _("System prompt"),
    "append": _("Addition to the system prompt"),
    "persona": _("Persona file"),
    "context": _("Context file"),
    "workspace": _("Workspace file"),
    "skill": _("Skill"),
}
WHERE = {
    "each": _("In each folder from the root down to the working directory"),
    "project": _("In the working directory alone"),
}
WHICH = {"all": _("All of them"), "first": _("The first that is there")}
CAP_WORDS = {
    "file_bytes": _("Bytes of one file"),
    "total_bytes": _("Bytes of all files"),
    "files": _("Files"),
    "entries": _("Names looked at"),
    "depth": _("Folders deep"),
    "seconds": _("Seconds"),
}


@dataclass(frozen=True)
class RuleInWords:
    """One rule as a row of a table."""

    kind: str
    paths: tuple[str, ...]
    where: str
    which: str
    is_off: bool


@dataclass(frozen=True)
class CapInWords:
    """One cap, and whether a workspace lowered it."""

    words: str
    value: float
    is_lowered: bool


def rules_in_words(harness: Harness) -> list[RuleInWords]:
    """The rules in their order, the extra skill folders last as they count last."""
    extra = [f"{folder}/*/SKILL.md" for folder in harness.extra_skill_folders]
    rows = [rule_in_words(rule, where_of(rule), harness) for rule in harness.rules]
    if extra:
        rows.append(rule_in_words(Rule("skill", tuple(extra)), gettext("Below the source's root"), harness))
    return rows


def rule_in_words(rule: Rule, where: str, harness: Harness) -> RuleInWords:
    is_choice = len(rule.paths) > 1 or any("*" in path for path in rule.paths)
    which = str(WHICH[rule.take]) if is_choice else ""
    return RuleInWords(str(KIND_WORDS[rule.kind]), rule.paths, where, which, rule.kind in harness.off)


def where_of(rule: Rule) -> str:
    if all(path.startswith(HOME) for path in rule.paths):
        return gettext("In the global folder")
    either = any(path.startswith(HOME) for path in rule.paths)
    return (
        gettext("%(where)s, or in the global folder") % {"where": WHERE[rule.at]}
        if either
        else str(WHERE[rule.at])
    )


def caps_in_words(caps: Caps) -> list[CapInWords]:
    most = Caps()
    values = [(name, getattr(caps, name)) for name in CAP_WORDS]
    return [CapInWords(str(CAP_WORDS[name]), value, value != getattr(most, name)) for name, value in values]


def files_read(harness: Harness) -> str:
    """What the rules look for, as file names; a folder is told where the name alone says too little."""
    return ", ".join(unique(short(path) for rule in harness.rules for path in rule.paths))


def short(path: str) -> str:
    *folders, name = path.split("/")
    if name == "SKILL.md":
        return gettext("skills")
    return f"{folders[-1]}/{name}" if "*" in name and folders else name


def unique(words: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(words))
