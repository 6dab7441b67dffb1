"""Compile a query again in a test that changes how it is built."""

import pytest

from core.db.compiled_query import MAX_FORMS, CompiledQuery
from core.shared_cache import SharedLRUCache


def compile_again(monkeypatch: pytest.MonkeyPatch, query: CompiledQuery) -> None:
    """Forget the compiled forms of a query until the end of the test."""
    monkeypatch.setattr(query.queries, "forms", SharedLRUCache(MAX_FORMS))
