"""Run functions at the end of a transaction, before its commit."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.db import connection, transaction

Hook = Callable[[list[Any]], None]


class TransactionHooks:
    """The collected items of a transaction by the function that gets them.

    The functions in `last` are called after those in `first`.
    """

    def __init__(self) -> None:
        self.first: dict[Hook, list[Any]] = {}
        self.last: dict[Hook, list[Any]] = {}

    def run(self) -> None:
        for function, items in [*list(self.first.items()), *list(self.last.items())]:
            function(items)

    def count_items(self) -> dict[Hook, int]:
        return {function: len(items) for function, items in [*self.first.items(), *self.last.items()]}

    def remove_after(self, counts: dict[Hook, int]) -> None:
        """Remove the items that were added after `counts` were taken."""
        for hooks in (self.first, self.last):
            for function, items in list(hooks.items()):
                del items[counts.get(function, 0) :]
                if not items:
                    del hooks[function]


# None outside of `atomic_with_hooks`.
_hooks: ContextVar[TransactionHooks | None] = ContextVar("before_commit_hooks", default=None)


@contextmanager
def atomic_with_hooks() -> Iterator[None]:
    """A transaction that ends with the functions given to `before_commit`.

    Use it only if the block takes all locks of the transaction: the functions take locks after those. Within
    another transaction this is `atomic()`, because the end of that transaction is not known here.
    """
    if connection.in_atomic_block:
        with discard_items_on_error(), transaction.atomic():
            yield
        return
    hooks = TransactionHooks()
    token = _hooks.set(hooks)
    try:
        with transaction.atomic():
            yield
            hooks.run()
    finally:
        _hooks.reset(token)


@contextmanager
def discard_items_on_error() -> Iterator[None]:
    """Remove the items that the block added, if it fails: its changes are rolled back to a savepoint."""
    hooks = _hooks.get()
    counts = hooks.count_items() if hooks else {}
    try:
        yield
    except BaseException:
        if hooks:
            hooks.remove_after(counts)
        raise


def get_current_transaction() -> object | None:
    """Return an object that stands for the current transaction of `atomic_with_hooks`, or None."""
    return _hooks.get()


def before_commit(function: Hook, item: Any, *, is_last: bool = False) -> bool:
    """Call the function once before the commit, with all items that were given for it.

    With `is_last`, it is called after the other functions. Return False if the current transaction does not
    support this; the function is then not called.
    """
    hooks = _hooks.get()
    if hooks is None:
        return False
    (hooks.last if is_last else hooks.first).setdefault(function, []).append(item)
    return True


def get_waiting_items(function: Hook) -> list[Any]:
    """Return the items that wait for a function with `is_last`. A caller that handles some removes them."""
    hooks = _hooks.get()
    return hooks.last.get(function, []) if hooks else []
