"""Database session store that reports a database outage as such."""

from django.contrib.sessions.backends.base import UpdateError
from django.contrib.sessions.backends.db import SessionStore as StoredSession
from django.db import OperationalError


class SessionStore(StoredSession):
    """Raise OperationalError if the database is down.

    Django treats every failure to save as a session that was deleted meanwhile, and responds with 400.
    """

    def save(self, must_create: bool = False) -> None:
        try:
            super().save(must_create)
        except UpdateError as error:
            if isinstance(error.__context__, OperationalError):
                raise error.__context__ from None
            raise
