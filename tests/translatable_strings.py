"""List the English texts that are marked for translation, in templates and in Python."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
APPS = ("core", "personas", "skills", "prompts", "project")
TEMPLATE_SUFFIXES = {".html", ".jinja", ".txt"}
# Pages for developers.
SKIPPED_TEMPLATES = {"styleguide.html"}
GETTEXT_NAMES = {
    "_",
    "gettext",
    "gettext_lazy",
    "gettext_noop",
    "ngettext",
    "ngettext_lazy",
    "npgettext",
    "pgettext",
    "pgettext_lazy",
}
STRING = r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
TAG = re.compile(r"\{%-?\s*(?:translate|trans)\s+" + STRING)
CALL = re.compile(r"(?<![\w.])_\(\s*" + STRING)
BLOCK = re.compile(
    r"\{%-?\s*(?:blocktranslate|blocktrans|trans)\b[^%\"']*%\}(.*?)\{%-?\s*end(?:blocktranslate|blocktrans|trans)\s*-?%\}",
    re.DOTALL,
)
PLURAL = re.compile(r"\{%-?\s*(?:plural|pluralize\b[^%]*)\s*-?%\}")


class TranslatableString(NamedTuple):
    text: str
    path: str
    line: int


def list_template_strings(source: str, path: str = "") -> Iterator[TranslatableString]:
    for pattern in (TAG, CALL):
        for match in pattern.finditer(source):
            yield TranslatableString(match[1][1:-1], path, source.count("\n", 0, match.start()) + 1)
    for match in BLOCK.finditer(source):
        for part in PLURAL.split(match[1]):
            yield TranslatableString(" ".join(part.split()), path, source.count("\n", 0, match.start()) + 1)


def list_python_strings(source: str, path: str = "") -> Iterator[TranslatableString]:
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name in GETTEXT_NAMES:
            for argument in node.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield TranslatableString(argument.value, path, node.lineno)


def list_translatable_strings(root: Path = ROOT) -> Iterator[TranslatableString]:
    for path in sorted((root / "templates").rglob("*")):
        if path.suffix in TEMPLATE_SUFFIXES and path.name not in SKIPPED_TEMPLATES:
            yield from list_template_strings(path.read_text(encoding="utf-8"), str(path.relative_to(root)))
    for app in APPS:
        for path in sorted((root / app).rglob("*.py")):
            if "migrations" not in path.parts:
                yield from list_python_strings(path.read_text(encoding="utf-8"), str(path.relative_to(root)))
