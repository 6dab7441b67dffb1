"""List the English texts that are not marked for translation: messages in Python, and documentation."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.translatable_strings import APPS, GETTEXT_NAMES, ROOT, TranslatableString

PYTHON_ROOTS = (*APPS, "clients/python/src", "clients/claude-code/hooks")
# Content, not messages: sections of prompts, whose text the seeds specify, and the demo.
SKIPPED_FOLDERS = ("prompts/assembly/", "prompts/demo/")
# Quotations of names and literals, and the output of tests.
SKIPPED_DOCUMENTS = ("docs/decisions/", "docs/seeds.md", "docs/glossary.md", "docs/promises.md")
# SQL, CSS, HTML, patterns and type annotations.
CODE = re.compile(
    r"^\s*(?:[A-Z_]{2,}\b|<\w|\(|\[|\\|\^|[-#.]\w+[ -]|\w+\[|(?:Callable|Iterable|Query)\w*\b|\S*=\S*)"
)
SENTENCE = re.compile(r"[A-Za-z]{2,} .*[A-Za-z]{2,}", re.DOTALL)
FENCE = re.compile(r"^\s*```.*?^\s*```\s*$", re.MULTILINE | re.DOTALL)
QUOTED = re.compile(r"`[^`]*`|\[([^\]]*)\]\([^)]*\)|https?://\S+")


def list_messages(source: str, path: str = "") -> Iterator[TranslatableString]:
    """Yield string literals that read like a message: no docstrings, no texts for translation, no code."""
    tree = ast.parse(source)
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            skipped.update(id(value) for value in node.values)
        elif isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if name in GETTEXT_NAMES:
                skipped.update(id(argument) for argument in node.args)
    for node in ast.walk(tree):
        text = get_literal_text(node)
        if text and id(node) not in skipped and SENTENCE.search(text) and not CODE.match(text):
            yield TranslatableString(text, path, getattr(node, "lineno", 0))


def get_literal_text(node: ast.AST) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(v.value) if isinstance(v, ast.Constant) else "{x}" for v in node.values)
    return ""


def list_python_messages(root: Path = ROOT) -> Iterator[TranslatableString]:
    for folder in PYTHON_ROOTS:
        for path in sorted((root / folder).rglob("*.py")):
            name = path.relative_to(root).as_posix()
            if "migrations" not in path.parts and not name.startswith(SKIPPED_FOLDERS):
                yield from list_messages(path.read_text(encoding="utf-8"), name)


def list_paragraphs(source: str, path: str = "") -> Iterator[TranslatableString]:
    """Yield paragraphs and rows of Markdown tables, without code."""
    text = FENCE.sub(lambda match: "\n" * match[0].count("\n"), source)
    for match in re.finditer(r"(?:^.*\S.*$\n?)+", text, re.MULTILINE):
        plain = QUOTED.sub(lambda quoted: quoted[1] or "x_y", match[0])
        yield TranslatableString(" ".join(plain.split()), path, text.count("\n", 0, match.start()) + 1)


def list_documentation(root: Path = ROOT) -> Iterator[TranslatableString]:
    folders = (root, root / "docs", root / "clients/python", root / "clients/typescript")
    for path in (*(path for folder in folders for path in sorted(folder.glob("*.md"))),):
        name = path.relative_to(root).as_posix()
        if not name.startswith(SKIPPED_DOCUMENTS):
            yield from list_paragraphs(path.read_text(encoding="utf-8"), name)
