"""Salted contents: equal data is stored once, also by transactions at the same time."""

import json
import threading
from hashlib import sha256

import pytest
from django.db import connection, transaction

from core.salted_digests import salt_digest
from personas.contents.services import SaltedDigests, store_contents
from personas.erasure.services import erase_contents
from personas.models import Content, Workspace, sha256_digest
from tests.database_locks import is_waiting_for_lock
from tests.workers import wait_for

TEXT = b"The door code is 8236."
PLAIN = sha256_digest(TEXT)


def store(workspace: Workspace, *texts: bytes) -> SaltedDigests:
    digests = SaltedDigests(workspace)
    with transaction.atomic():
        digests.store({sha256_digest(text): text for text in texts})
    return digests


@pytest.mark.django_db
def test_equal_data_has_one_digest_until_it_is_erased(workspace):
    first, second = store(workspace, TEXT), store(workspace, TEXT, b"Other")
    digest, salt = first.by_plain[PLAIN]
    assert second.by_plain[PLAIN] == (digest, salt)
    assert digest == salt_digest(sha256(TEXT).hexdigest(), salt)
    erase_contents(workspace.pk, [digest])
    third = store(workspace, TEXT).by_plain[PLAIN]
    assert third.digest != digest
    rows = Content.objects.in_workspace(workspace).filter(digest=digest)
    assert rows.values_list("data", "salt", "plain_digest").get() == (None, None, None)


@pytest.mark.django_db
def test_two_workspaces_have_different_digests(workspace, elsewhere):
    assert store(workspace, TEXT).by_plain[PLAIN] != store(elsewhere, TEXT).by_plain[PLAIN]


@pytest.mark.django_db
def test_one_statement_stores_contents_and_the_lists_that_name_them(workspace, django_assert_num_queries):
    digests = SaltedDigests(workspace)

    def build_lists() -> dict[str, bytes]:
        data = json.dumps([digests.by_plain[PLAIN].digest]).encode()
        return {sha256_digest(data): data}

    with transaction.atomic():
        digests.lock_and_find([PLAIN])
        with django_assert_num_queries(1):
            digests.store_with_lists({PLAIN: TEXT}, build_lists)
        with django_assert_num_queries(1):
            digests.store_with_lists({PLAIN: TEXT}, build_lists)
    assert Content.objects.in_workspace(workspace).count() == 2


@pytest.mark.django_db
def test_unsalted_contents_are_stored_once(workspace):
    for _ in range(2):
        store_contents(workspace, {PLAIN: TEXT})
    assert Content.objects.in_workspace(workspace).values_list("digest", "salt").get() == (PLAIN, None)


@pytest.mark.django_db
def test_more_contents_than_one_statement_takes_are_stored(workspace, monkeypatch):
    monkeypatch.setattr("personas.contents.services.ROWS_PER_INSERT", 3)
    monkeypatch.setattr("personas.contents.services.CHUNK_SIZE", 2)
    texts = [f"Text {number}".encode() for number in range(10)]
    store(workspace, *texts[:5])
    assert len(store(workspace, *texts).by_plain) == 10
    assert Content.objects.in_workspace(workspace).count() == 10


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_two_transactions_agree_on_the_row_that_was_first(workspace):
    """The second waits for the first, takes over its digest, and builds its lists again."""
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has one writer at a time")
    second, built = SaltedDigests(workspace), []

    def build_lists() -> dict[str, bytes]:
        built.append(second.by_plain[PLAIN].digest)
        data = json.dumps(built[-1]).encode()
        return {sha256_digest(data): data}

    def store_second() -> None:
        with transaction.atomic():
            second.store_with_lists({PLAIN: TEXT}, build_lists)
        connection.close()

    thread = threading.Thread(target=store_second)
    with transaction.atomic():
        first = SaltedDigests(workspace)
        first.store({PLAIN: TEXT})
        thread.start()
        assert wait_for(is_waiting_for_lock), "the second transaction did not wait"
    thread.join(60)
    assert second.by_plain[PLAIN] == first.by_plain[PLAIN]
    assert len(built) == 2
    assert built[-1] == first.by_plain[PLAIN].digest
    digests = set(Content.objects.in_workspace(workspace).values_list("digest", flat=True))
    assert sha256_digest(json.dumps(built[-1]).encode()) in digests
