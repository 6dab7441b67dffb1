"""Guess erased text: compare the digests of guesses with all that looks like a digest in the database."""

import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any

from django.apps import apps
from django.db import connection

from core.salted_digests import combine_salts, salt_digest

DIGEST = re.compile(rb"[0-9a-f]{64}")
SALT = re.compile(rb"\b[0-9a-f]{32}\b")


def read_database() -> Iterator[tuple[str, bytes]]:
    """Yield the name of each column and each of its values as bytes."""
    with connection.cursor() as cursor:
        for model in apps.get_models():
            for field in model._meta.concrete_fields:
                name = f'"{model._meta.db_table}"."{field.column}"'
                cursor.execute(f'SELECT {name} FROM "{model._meta.db_table}"')  # noqa: S608  # our own names
                for (value,) in cursor.fetchall():
                    yield name, as_bytes(value)


def as_bytes(value: Any) -> bytes:
    return bytes(value) if isinstance(value, memoryview | bytes) else str(value).encode()


def find_columns_with(text: str) -> list[str]:
    """Return every table column, of any type, that contains the text."""
    return sorted({name for name, value in read_database() if text.encode() in value})


def list_stored_texts() -> set[bytes]:
    """Return the data of all contents, of versions and of calls."""
    with connection.cursor() as cursor:
        texts: set[bytes] = set()
        for table in ("personas_content", "prompts_callcontent"):
            cursor.execute(f"SELECT data FROM {table} WHERE data IS NOT NULL")  # noqa: S608  # our own names
            texts |= {bytes(data) for (data,) in cursor.fetchall()}
    return texts


def find_guessed_columns(guesses: Iterable[bytes], salt_lists: Iterable[list[str]] = ()) -> list[str]:
    """Return the columns that contain a digest of a guess: plain, or salted with a salt that is stored.

    `salt_lists` are lists of salts that a text may be salted with together; unknown ones are empty.
    """
    values = list(read_database())
    salts = {found.decode() for _, value in values for found in SALT.findall(value)}
    salts |= {combine_salts(salts) for salts in salt_lists}
    plain = [sha256(guess).hexdigest() for guess in guesses]
    digests = {salt_digest(digest, salt).encode() for digest in plain for salt in {"", *salts}}
    return sorted({name for name, value in values if digests & set(DIGEST.findall(value))})
