"""on_commit hooks in tests, which run in a transaction, behave like those of real commits."""

import pytest
from django.db import transaction

from tests.module_fixtures import commits_heard

pytestmark = pytest.mark.django_db


@pytest.fixture
def calls(db):
    """Return the list of calls, in order."""
    with commits_heard():
        yield []


def test_what_waits_for_a_commit_runs_after_the_outermost_block_and_once(calls):
    with transaction.atomic():
        with transaction.atomic():
            transaction.on_commit(lambda: calls.append("inner"))
        assert calls == []
        transaction.on_commit(lambda: calls.append("outer"))
    assert calls == ["inner", "outer"]
    with transaction.atomic():
        pass
    assert calls == ["inner", "outer"]


def test_outside_of_a_block_hooks_and_nested_hooks_run_immediately(calls):
    transaction.on_commit(lambda: transaction.on_commit(lambda: calls.append("second")))
    assert calls == ["second"]


def test_hooks_of_a_failed_block_never_run(calls):
    def fail() -> None:
        with transaction.atomic():
            transaction.on_commit(lambda: calls.append("failed"))
            raise LookupError

    with transaction.atomic():
        transaction.on_commit(lambda: calls.append("before"))
        with pytest.raises(LookupError):
            fail()
    with pytest.raises(LookupError):
        fail()
    assert calls == ["before"]


def test_a_robust_hook_fails_alone_and_another_raises(calls):
    def fail() -> None:
        raise LookupError

    with transaction.atomic():
        transaction.on_commit(fail, robust=True)
        transaction.on_commit(lambda: calls.append("after"))
    assert calls == ["after"]
    with pytest.raises(LookupError), transaction.atomic():
        transaction.on_commit(fail)


def test_hooks_do_not_run_after_the_context_manager(db):
    calls: list[str] = []
    with commits_heard():
        pass
    with transaction.atomic():
        transaction.on_commit(lambda: calls.append("late"))
    assert calls == []
