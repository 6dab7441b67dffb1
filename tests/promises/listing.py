"""Lists which tests prove which promise, by parsing the test files."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class PromiseTest:
    """A test that proves a promise, or plants a fault that the proof must detect."""

    file: str
    name: str
    promise: str
    is_planted: bool


def list_promise_tests(folder: Path) -> list[PromiseTest]:
    return [one for path in sorted(folder.rglob("test_*.py")) for one in list_tests_in(path)]


def list_tests_in(path: Path) -> Iterator[PromiseTest]:
    text = path.read_text()
    # Most files have no such mark, and parsing them would take seconds.
    if "mark.promise" not in text:
        return
    tree = ast.parse(text)
    module_marks = [mark for node in tree.body if is_pytestmark(node) for mark in marks_in(node)]
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            marks = [*module_marks, *(mark for one in node.decorator_list for mark in marks_in(one))]
            names = {name for name, _ in marks}
            is_planted = "planted" in names and "control" not in names
            for name in dict.fromkeys(promise for kind, promise in marks if kind == "promise"):
                yield PromiseTest(path.name, node.name, name, is_planted)


def is_pytestmark(node: ast.AST) -> bool:
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"


def marks_in(node: ast.AST) -> Iterator[tuple[str, str]]:
    """`pytest.mark.x` as (x, ""), `pytest.mark.promise("R3")` as ("promise", "R3")."""
    for one in ast.walk(node):
        if (
            isinstance(one, ast.Attribute)
            and ast.unparse(one.value) == "pytest.mark"
            and one.attr != "promise"
        ):
            yield one.attr, ""
        if isinstance(one, ast.Call) and ast.unparse(one.func) == "pytest.mark.promise":
            yield "promise", str(ast.literal_eval(one.args[0]))
