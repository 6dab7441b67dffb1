"""Find the further files of a skill that its instructions refer to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from posixpath import normpath

# Targets of Markdown links, images and link definitions, and paths in the folders that the Agent Skills
# specification names. Quantifiers are bounded or possessive, so that matching takes linear time.
REFERENCE_PATTERN = re.compile(
    r"\][(:]\s{0,9}+(?:<([^<>\n]{1,300}+)>|([^\s()<>]{1,300}+))"
    r"|(?<![\w./-])((?:\./)?(?:scripts|references|assets)/[\w./-]{1,300}+)"
)
URL_SCHEME_PATTERN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
SKILL_FILE_NAME = "SKILL.md"


def list_referenced_paths(body: str) -> list[str]:
    """List the relative paths of files in the skill's folder that the instructions name, each once.

    Addresses, absolute paths, and paths that leave the folder are left out. A folder alone is no file.
    """
    targets = [match[match.lastindex or 0] for match in REFERENCE_PATTERN.finditer(body)]
    return list(dict.fromkeys(_iter_file_paths(targets)))


def _iter_file_paths(targets: list[str]) -> Iterator[str]:
    for target in targets:
        path = target.partition("#")[0].partition("?")[0].rstrip(".,;:")
        if not path or path.endswith("/") or path.startswith("/") or URL_SCHEME_PATTERN.match(path):
            continue
        path = normpath(path)
        if not path.startswith("..") and path not in {".", SKILL_FILE_NAME}:
            yield path
