"""The documents that lead through the code name modules, classes and functions that exist."""

import re
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name

import pytest

DOCS = Path(__file__).resolve().parents[3] / "docs"
DOCUMENTS = [*sorted(DOCS.glob("life-of-*.md")), DOCS / "add-a-field.md"]
NAME = re.compile(r"`((?:core|personas|skills|prompts|project)(?:\.\w+)+)`")


def list_missing(text: str) -> list[str]:
    """Return the dotted names in the text that are neither a module nor in one."""
    return [name for name in dict.fromkeys(NAME.findall(text)) if not exists(name)]


def exists(name: str) -> bool:
    try:
        resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_every_named_function_exists(document):
    text = document.read_text(encoding="utf-8")
    assert len(NAME.findall(text)) > 5
    assert list_missing(text) == []


@pytest.mark.planted
def test_a_name_that_does_not_exist_is_found():
    import_module("prompts.serving.resolve")
    text = "`prompts.serving.resolve.resolve_request` calls `prompts.serving.resolve.guess`."
    assert list_missing(text) == ["prompts.serving.resolve.guess"]
