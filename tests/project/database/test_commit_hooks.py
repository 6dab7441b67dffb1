"""What tests hear of commits they do not make is what the product would hear of real ones."""

import pytest
from django.db import transaction

from tests.module_fixtures import commits_heard

pytestmark = pytest.mark.django_db


@pytest.fixture
def calls(db):
    """What ran, in its order."""
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


def test_outside_of_any_block_it_runs_at_once_and_so_does_what_it_puts_off_itself(calls):
    transaction.on_commit(lambda: transaction.on_commit(lambda: calls.append("second")))
    assert calls == ["second"]


def test_what_a_failed_block_put_off_is_never_heard(calls):
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


def test_a_hook_that_may_fail_fails_alone_and_another_is_told(calls):
    def fail() -> None:
        raise LookupError

    with transaction.atomic():
        transaction.on_commit(fail, robust=True)
        transaction.on_commit(lambda: calls.append("after"))
    assert calls == ["after"]
    with pytest.raises(LookupError), transaction.atomic():
        transaction.on_commit(fail)


def test_afterwards_nothing_is_heard_any_more(db):
    calls: list[str] = []
    with commits_heard():
        pass
    with transaction.atomic():
        transaction.on_commit(lambda: calls.append("late"))
    assert calls == []
