"""By which rules the files of a source are judged."""

from django.utils import timezone

from skills.files.states import FilePolicy
from skills.models import Source, Waiver


def policy_for(source: Source) -> FilePolicy:
    """A waiver counts through its last day."""
    open_ones = Waiver.objects.in_workspace(source.workspace_id).filter(ended_at=None, file__source=source)
    live = open_ones.filter(until__gte=timezone.now().date())
    waived = frozenset(live.values_list("file_id", "digest"))
    return FilePolicy(source.adoption, source.workspace.skills_need_trust, waived)
