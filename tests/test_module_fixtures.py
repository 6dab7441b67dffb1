"""on_commit hooks in tests that never commit."""

from collections.abc import Callable

import pytest
from django.db import transaction

from tests.module_fixtures import commits_heard

pytestmark = pytest.mark.django_db


@transaction.atomic
def fail_after(hook: Callable[[], None]) -> None:
    transaction.on_commit(hook)
    raise ZeroDivisionError


def test_hooks_run_when_the_outermost_block_ends_and_not_when_it_fails():
    done: list[str] = []
    transaction.on_commit(lambda: done.append("before"))
    with commits_heard():
        with transaction.atomic():
            with transaction.atomic():
                transaction.on_commit(lambda: done.append("inner"))
            assert done == []
            transaction.on_commit(lambda: done.append("outer"))
        assert done == ["inner", "outer"]
        with pytest.raises(ZeroDivisionError):
            fail_after(lambda: done.append("failed"))
        with transaction.atomic():
            transaction.on_commit(lambda: done.append("undone"))
            transaction.set_rollback(True)
        transaction.on_commit(lambda: done.append("at once"))
    assert done == ["inner", "outer", "at once"]
    transaction.on_commit(lambda: done.append("after"))
    assert done[-1] == "at once"


def test_a_hook_may_register_another_hook():
    done: list[str] = []

    def build() -> None:
        with transaction.atomic():
            transaction.on_commit(lambda: done.append("told"))
            done.append("built")

    with commits_heard(), transaction.atomic():
        transaction.on_commit(build)
    assert done == ["built", "told"]
