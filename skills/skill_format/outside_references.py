"""Find Markdown links in a SKILL.md that lead out of the skill's folder."""

import re
from collections.abc import Iterator
from itertools import islice
from posixpath import normpath
from urllib.parse import unquote

from skills.skill_format.rules import SkillFlaw, SkillProblem

# Inline links and images, and reference definitions; the target may be in angle brackets.
LINK_PATTERN = re.compile(
    r"\]\(\s*(?:<([^<>\n]{1,500})>|([^\s()<>]{1,500}))|^ {0,3}\[[^\]\n]{1,200}\]:\s*(\S{1,500})"
)
SCHEME_PATTERN = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//|#")
FENCES = ("```", "~~~")
MAX_REFERENCES = 20


def list_outside_references(text: str) -> list[SkillProblem]:
    """List the links to files outside of the skill's folder, at most MAX_REFERENCES.

    Only files in the skill's folder belong to a skill, so an agent cannot open the others. URLs, anchors and
    code blocks are left out.
    """
    return list(islice(iter_outside_references(text), MAX_REFERENCES))


def iter_outside_references(text: str) -> Iterator[SkillProblem]:
    fence = ""
    for line_number, line in enumerate(text.splitlines(), start=1):
        start = line.lstrip()[:3]
        if start in FENCES and fence in {"", start}:
            fence = "" if fence else start
        elif not fence:
            for match in LINK_PATTERN.finditer(line):
                target = next(group for group in match.groups() if group)
                if is_outside_target(target):
                    yield SkillProblem(
                        "body", build_outside_message(target), line_number, SkillFlaw.OUTSIDE_REFERENCE
                    )


def is_outside_target(target: str) -> bool:
    """Return whether a link target is a path that leaves the folder of the file with the link."""
    path = unquote(re.split(r"[?#]", target, maxsplit=1)[0])
    if SCHEME_PATTERN.match(target) or not path:
        return False
    return path.startswith(("/", "~/")) or normpath(path).split("/")[0] == ".."


def build_outside_message(target: str) -> str:
    name = target if target.isprintable() else target.encode("unicode_escape").decode("ascii")
    return f"It refers to {name}, which is outside the skill's folder and not part of the skill."
