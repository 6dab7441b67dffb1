"""Finds text in Python code that is shown to users and not marked for translation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
APPS = ("core", "personas", "skills", "prompts")
# For programs or operators, or the same in every language: pure packages write prompts and proofs and do
# not import Django.
NOT_FOR_USERS = {"api", "management", "migrations", "demo", "assembly", "proof", "scanning"}
NOT_FOR_USERS |= {"archives", "discovery", "inputs", "serving", "admin.py", "apps.py", "api.py"}

MARKS = {"_", "gettext", "gettext_lazy", "ngettext", "ngettext_lazy", "pgettext", "format_lazy"}
# Functions that show text, with the position of the text argument.
TEXT_FUNCTIONS = {"add_toast": 1, "LabelActionResult": 0, "add_error": 1, "badge": 0, "ValidationError": 0}
LEVELS = {"success", "info", "warning", "error"}
TEXT_ARGUMENTS = {"label", "help_text", "empty_label", "title", "lede", "words", "violation_error_message"}
TEXT_ARGUMENTS |= {"error_messages", "help_texts", "labels", "hint"}
# Class attributes of forms, record pages and label tables.
TEXT_ATTRIBUTES = {
    "labels",
    "help_texts",
    "fieldsets",
    "lede",
    "one",
    "many",
    "archive_label",
    "restore_label",
}
TABLE = re.compile(r"[A-Z_]*(LABELS|REASONS|TEXTS|FILTERS|WORDS|TITLES|STATES|CHOICES|HELP)")
CLASS = re.compile(r"^\s*class (\w+)\(([^)]*)\)", re.MULTILINE)
WORD = re.compile(r"[^\W\d_]{2,}")
# File names and identifiers.
IDENTIFIER = re.compile(r"[A-Z]+\.md|[a-z_]+|bot:|/[a-z]*: |<.*>")


def list_modules() -> list[Path]:
    """Modules that may show text to users."""
    paths = (path for app in APPS for path in sorted((ROOT / app).rglob("*.py")))
    return [
        path
        for path in paths
        if not NOT_FOR_USERS & set(path.relative_to(ROOT).parts) and not path.stem.endswith("_api")
    ]


def find_user_errors(sources: Iterable[str]) -> set[str]:
    """The names of all exception classes whose message is shown to users."""
    bases = {
        name: {base.strip().rpartition(".")[2] for base in above.split(",")}
        for source in sources
        for name, above in CLASS.findall(source)
    }
    known = {"DomainError"}
    while more := {name for name, above in bases.items() if above & known} - known:
        known |= more
    return known


def find_unmarked_literals(source: str, errors: Iterable[str] = ("DomainError", "Invalid")) -> list[str]:
    """Unmarked text with its line numbers."""
    tree, raised = ast.parse(source), frozenset(errors)
    expressions = [expression for node in ast.walk(tree) for expression in _texts_at(node, raised)]
    literals = {(node.lineno, text) for one in expressions for node, text in _unmarked(one)}
    return [f"line {line}: {text}" for line, text in sorted(literals)]


def _texts_at(node: ast.AST, errors: frozenset[str]) -> Iterator[ast.expr]:
    if isinstance(node, ast.Call):
        yield from _texts_of_call(node, errors)
    elif isinstance(node, ast.ClassDef):
        yield from _texts_of_class(node)
    elif isinstance(node, ast.Module):
        for name, value in _assigned(node.body):
            if TABLE.fullmatch(name):
                yield value


def _texts_of_call(node: ast.Call, errors: frozenset[str]) -> Iterator[ast.expr]:
    name, owner = _name(node.func), _name(getattr(node.func, "value", None))
    place = TEXT_FUNCTIONS.get(name, 0 if name in errors else None)
    if (owner == "messages" and name in LEVELS) or (name == "on" and owner in errors):
        place = 1
    if place is not None and len(node.args) > place:
        yield node.args[place]
    # The titles of JSON schemas are names of types in the OpenAPI document.
    if not name.endswith("_schema"):
        yield from (one.value for one in node.keywords if one.arg in TEXT_ARGUMENTS)


def _texts_of_class(node: ast.ClassDef) -> Iterator[ast.expr]:
    is_choices = any(_name(base).endswith("Choices") for base in node.bases)
    for name, value in _assigned(node.body):
        if name in TEXT_ATTRIBUTES:
            yield value
        elif is_choices and isinstance(value, ast.Tuple):
            yield from value.elts[1:]


def _assigned(body: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    for one in body:
        if isinstance(one, ast.AnnAssign) and one.value:
            yield _name(one.target), one.value
        elif isinstance(one, ast.Assign):
            target, value = one.targets[0], one.value
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                yield from zip(map(_name, target.elts), value.elts, strict=True)
            else:
                yield _name(target), value


def _unmarked(node: ast.expr) -> Iterator[tuple[ast.expr, str]]:
    """Yield string literals outside translation marks."""
    if isinstance(node, ast.Call) and (_name(node.func) in MARKS):
        return
    if isinstance(node, ast.Constant | ast.JoinedStr):
        text = _literal_text(node)
        if WORD.search(text) and not IDENTIFIER.fullmatch(text):
            yield node, text
    for inner in _inside(node):
        yield from _unmarked(inner)


def _literal_text(node: ast.Constant | ast.JoinedStr) -> str:
    pieces = node.values if isinstance(node, ast.JoinedStr) else [node]
    literal = [one.value for one in pieces if isinstance(one, ast.Constant)]
    return "".join(value for value in literal if isinstance(value, str))


def _inside(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the parts of an expression that can become its value."""
    if isinstance(node, ast.IfExp):
        yield from (node.body, node.orelse)
    elif isinstance(node, ast.BinOp):
        yield from (node.left, node.right) if isinstance(node.op, ast.Add) else (node.left,)
    elif isinstance(node, ast.BoolOp | ast.Dict):
        yield from node.values
    elif isinstance(node, ast.Tuple | ast.List):
        yield from node.elts
    elif isinstance(node, ast.JoinedStr):
        yield from (one.value for one in node.values if isinstance(one, ast.FormattedValue))


def _name(node: ast.AST | None) -> str:
    return str(getattr(node, "id", "") or getattr(node, "attr", ""))
