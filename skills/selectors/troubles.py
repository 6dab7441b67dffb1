"""Files that an agent should be given and that something speaks against."""

from django.db.models import Q

from personas.models import Agent
from skills.models import ContextFile, FileState, Reach
from skills.selectors.contexts import Outlook, outlook_of

GRAVE = (FileState.QUARANTINED, FileState.INVALID)


def troubles_of(agent: Agent) -> list[ContextFile]:
    """Quarantined or invalid files of one agent; no contents are loaded, so every page may ask."""
    rows = ContextFile.objects.in_workspace(agent.workspace_id).filter(is_ignored=False)
    grave = rows.filter(state__in=GRAVE, source__archived_at=None).select_related("newest", "in_force")
    handed = Q(file_kind="skill") & (Q(reach=Reach.ALL) | Q(reach=Reach.CHOSEN, agent_links__agent=agent))
    outlook = outlook_of(agent)
    own = Q(source=outlook.source) if outlook else Q(pk=None)
    found = list(grave.filter(own | handed).distinct().order_by("path", "pk"))
    if outlook is None or not found:
        return found
    named = named_by(outlook)
    return [file for file in found if is_for(file, outlook, named)]


def named_by(outlook: Outlook) -> set[str]:
    """The paths of a source that its rules name for an agent."""
    rows = ContextFile.objects.in_workspace(outlook.source.workspace_id).filter(source=outlook.source)
    live = rows.filter(Q(is_there=True) | Q(in_force__isnull=False), is_ignored=False)
    return {path for _, path in outlook.paths(set(live.values_list("path", flat=True)))}


def is_for(file: ContextFile, outlook: Outlook, named: set[str]) -> bool:
    if file.file_kind == "skill" and file.reach != Reach.FOUND:
        return True
    return file.source_id == outlook.source.pk and file.path in named
