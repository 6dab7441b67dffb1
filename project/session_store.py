"""Sessions in the database; while it is away, that is what is said."""

from django.contrib.sessions.backends.base import UpdateError
from django.contrib.sessions.backends.db import SessionStore as StoredSession
from django.db import OperationalError


class SessionStore(StoredSession):
    """Django takes every failure to save for a session that somebody has ended meanwhile, and answers 400."""

    def save(self, must_create: bool = False) -> None:
        try:
            super().save(must_create)
        except UpdateError as error:
            if isinstance(error.__context__, OperationalError):
                raise error.__context__ from None
            raise
