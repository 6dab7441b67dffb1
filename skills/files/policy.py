"""Load the file policy of a source: approval mode, trust requirement and valid waivers."""

from django.utils import timezone

from skills.files.statuses import FilePolicy
from skills.models import Source, Waiver


def policy_for(source: Source) -> FilePolicy:
    """Return the policy for the files of a source. A waiver is valid through its `until` date."""
    waivers = Waiver.objects.in_workspace(source.workspace_id).filter(ended_at=None, file__source=source)
    valid = waivers.filter(until__gte=timezone.now().date())
    waived = frozenset(valid.values_list("file_id", "digest"))
    return FilePolicy(source.approval, source.workspace.skills_need_trust, waived)
