"""Run functions at the end of a transaction, before its commit."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.db import connection, transaction

# The collected items of the current transaction by the function that gets them; None outside of
# `atomic_with_hooks`.
Hooks = dict[Callable[[list[Any]], None], list[Any]]
_hooks: ContextVar[Hooks | None] = ContextVar("before_commit_hooks", default=None)


@contextmanager
def atomic_with_hooks() -> Iterator[None]:
    """A transaction that ends with the functions given to `before_commit`.

    Use it only if the block takes all locks of the transaction: the functions take locks after those. Within
    another transaction this is `atomic()`, because the end of that transaction is not known here.
    """
    if connection.in_atomic_block:
        with transaction.atomic():
            yield
        return
    hooks: Hooks = {}
    token = _hooks.set(hooks)
    try:
        with transaction.atomic():
            yield
            for function, items in list(hooks.items()):
                function(items)
    finally:
        _hooks.reset(token)


def get_current_transaction() -> object | None:
    """Return an object that stands for the current transaction of `atomic_with_hooks`, or None."""
    return _hooks.get()


def before_commit(function: Callable[[list[Any]], None], item: Any) -> bool:
    """Call the function once before the commit, with all items that were given for it.

    Return False if the current transaction does not support this; the function is then not called.
    """
    hooks = _hooks.get()
    if hooks is None:
        return False
    hooks.setdefault(function, []).append(item)
    return True
