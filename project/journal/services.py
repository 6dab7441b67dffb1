"""Bring the journal up to date, and report how far it is."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import structlog
from django.conf import settings
from django.core.cache import cache
from django.utils import timezone

from project.journal.files import JournalError, append_endings, read_journal
from project.journal.selectors import list_endings
from prompts.evidence.integrity.checkpoint_signer import NoSigningKey, load_signing_key

log = structlog.get_logger(__name__)

# How old the journal may be before it is reported. The job runs every minute.
MAX_JOURNAL_LAG = timedelta(minutes=5)
STATUS_KEY, STATUS_SECONDS = "endings-journal", 86_400


def get_journal_folder() -> Path:
    """Return the folder of the checkpoint files, which operators copy to another system."""
    return Path(settings.DRAMATIS_CHECKPOINT_DIR)


def record_endings() -> int:
    """Append all endings that the journal lacks, also after an outage, and return their number.

    It can run at any time and in several processes: a file lock orders them, and no ending is written twice.
    """
    try:
        count, head = append_endings(
            get_journal_folder(), list_endings, key=load_signing_key(), now=timezone.now()
        )
    except (JournalError, NoSigningKey, OSError) as error:
        save_journal_status(problem=str(error))
        raise
    save_journal_status(at=head.through_at)
    if count:
        log.info("endings_recorded", count=count)
    return count


def save_journal_status(*, at: datetime | None = None, problem: str = "") -> None:
    """Store when the journal was complete and what went wrong since, for processes without the folder."""
    status: dict[str, Any] = {**get_journal_status(), "problem": problem[:300]}
    if at is not None:
        status["at"] = at.isoformat()
    cache.set(STATUS_KEY, status, timeout=STATUS_SECONDS)


def get_journal_status() -> dict[str, Any]:
    status = cache.get(STATUS_KEY)
    return status if isinstance(status, dict) else {}


def find_journal_problem() -> str:
    """Return why the journal is not up to date, or an empty text."""
    status = get_journal_status()
    if problem := status.get("problem"):
        return f"The journal of endings cannot be written: {problem}."
    if "at" not in status:
        return "The journal of endings was not written in the last day."
    lag = timezone.now() - datetime.fromisoformat(status["at"])
    if lag > MAX_JOURNAL_LAG:
        return f"The journal of endings is {lag.total_seconds() / 60:.0f} minutes old."
    try:
        # Processes that have the folder verify the whole journal. For the others, there is none to read.
        read_journal(get_journal_folder())
    except (JournalError, NoSigningKey, OSError) as error:
        return f"The journal of endings is damaged: {error}."
    return ""
