"""Compile queries again in a test that changes how they are built."""

from typing import Any

import pytest

from core.db.fast.compiled_query import MAX_FORMS, CompiledQueries, CompiledQuery
from core.shared_cache import SharedLRUCache


def compile_again(monkeypatch: pytest.MonkeyPatch, query: CompiledQuery) -> None:
    """Forget the compiled forms of a query until the end of the test."""
    monkeypatch.setattr(query.queries, "forms", SharedLRUCache(MAX_FORMS))


def use_own_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile all queries for this test alone.

    A fault in a function that builds a query would otherwise stay in the compiled form, and fail the tests
    that follow in the same process.
    """
    own: dict[CompiledQueries, SharedLRUCache[Any, Any]] = {}

    def get_forms(queries: CompiledQueries) -> SharedLRUCache[Any, Any]:
        return own.setdefault(queries, SharedLRUCache(MAX_FORMS))

    def set_forms(queries: CompiledQueries, forms: SharedLRUCache[Any, Any]) -> None:
        own[queries] = vars(queries)["forms"] = forms

    # A property of the class takes precedence over the attributes of its instances.
    monkeypatch.setattr(CompiledQueries, "forms", property(get_forms, set_forms), raising=False)
