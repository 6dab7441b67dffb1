import pytest
from django.db import connection, transaction

from core.db.before_commit import atomic_with_hooks, before_commit
from personas.models import Workspace

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_function_runs_once_before_the_commit_with_all_items():
    calls = []

    def note(items: list[int]) -> None:
        calls.append((items, connection.in_atomic_block, Workspace.objects.filter(slug="new").exists()))

    with atomic_with_hooks():
        assert before_commit(note, 1)
        with atomic_with_hooks():
            assert before_commit(note, 2)
        Workspace.objects.create(name="New", slug="new")
        assert calls == []
    assert calls == [([1, 2], True, True)]


def test_an_error_of_the_function_undoes_the_transaction():
    def fail(items: list[int]) -> None:
        raise RuntimeError("no")

    def create() -> None:
        with atomic_with_hooks():
            Workspace.objects.create(name="New", slug="new")
            before_commit(fail, 1)

    with pytest.raises(RuntimeError):
        create()
    assert not Workspace.objects.filter(slug="new").exists()


def test_nothing_runs_after_an_error_and_nothing_is_left_for_the_next_transaction():
    calls: list[list[int]] = []

    def fail() -> None:
        with atomic_with_hooks():
            before_commit(calls.append, 1)
            raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        fail()
    with atomic_with_hooks():
        pass
    assert calls == []


def test_other_transactions_do_not_support_it():
    assert not before_commit(print, 1)
    with transaction.atomic():
        assert not before_commit(print, 1)
        with atomic_with_hooks():
            assert not before_commit(print, 1)
