"""Database session store that raises OperationalError if the database is down."""

from django.contrib.sessions.backends.base import UpdateError
from django.contrib.sessions.backends.db import SessionStore as StoredSession
from django.db import OperationalError


class SessionStore(StoredSession):
    """Raise OperationalError if a session cannot be saved because the database is down.

    Django's own store treats every failure to save as a deleted session, and the response is 400.
    """

    def save(self, must_create: bool = False) -> None:
        try:
            super().save(must_create)
        except UpdateError as error:
            if isinstance(error.__context__, OperationalError):
                raise error.__context__ from None
            raise
