"""Lets go of what was kept for people's convenience and is no part of any history."""

from datetime import datetime

from core.db.batch_delete import delete_in_batches
from personas.models import KeptDraft


def forget_drafts_before(moment: datetime) -> int:
    """Drafts that nobody has typed in since; how many went."""
    return delete_in_batches(KeptDraft.unscoped.filter(updated_at__lt=moment))
