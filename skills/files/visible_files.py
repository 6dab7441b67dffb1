"""Which found files a key may know of, and whom a found skill was handed to."""

from collections import defaultdict
from collections.abc import Iterable

from django.db.models import Q, QuerySet

from personas.api.authentication import Caller
from skills.api_helpers import sources_read_by
from skills.models import ContextFile, FileAgent, Reach


def visible_to(caller: Caller, rows: QuerySet[ContextFile]) -> QuerySet[ContextFile]:
    """With a limited key: what lies where its agents read, and skills that were handed to them."""
    if caller.agents is None:
        return rows
    links = FileAgent.objects.in_workspace(caller.workspace).filter(agent__slug__in=caller.agents)
    near = Q(source__in=sources_read_by(caller.workspace, caller.agents)) & ~Q(reach=Reach.CHOSEN)
    handed = Q(file_kind="skill", reach=Reach.ALL) | Q(reach=Reach.CHOSEN, pk__in=links.values("file"))
    return rows.filter(near | handed)


def chosen_agents(caller: Caller, files: Iterable[ContextFile]) -> dict[int, list[str]]:
    """By file; one query for all of them."""
    links = FileAgent.objects.in_workspace(caller.workspace).filter(file__in=[file.pk for file in files])
    found: dict[int, list[str]] = defaultdict(list)
    for file_id, slug in links.order_by("agent__slug").values_list("file_id", "agent__slug"):
        if caller.may_touch(slug):
            found[file_id].append(slug)
    return found
