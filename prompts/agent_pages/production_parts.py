"""Which of some records or files are in the versions of an agent that bots get now."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import or_

from django.db.models import Q

from personas.models import Agent
from prompts.agent_pages.selectors import Line
from prompts.models import VersionPart

# Kind and id.
Part = tuple[str, int]


def in_production(agent: Agent, parts: Iterable[Part], lines: Sequence[Line]) -> dict[Part, list[str]]:
    """By kind and id, the channels on whose production version it stands; one query."""
    served = {line.prompt_id: line for line in lines if line.prompt_id and line.production_id}
    wanted: dict[str, list[int]] = defaultdict(list)
    for kind, key in parts:
        wanted[kind].append(key)
    if not served or not wanted:
        return {}
    named = reduce(or_, [Q(kind=kind, object_id__in=keys) for kind, keys in wanted.items()])
    rows = VersionPart.objects.in_workspace(agent.workspace_id).filter(named, prompt__in=list(served))
    held: dict[tuple[Part, int], bool] = {}
    # Only changes are kept: the last one up to the version in production says whether it holds the part.
    for kind, key, prompt, version, revision in rows.order_by("version_id").values_list(
        "kind", "object_id", "prompt_id", "version_id", "revision"
    ):
        if version <= (served[prompt].production_id or 0):
            held[(kind, key), prompt] = revision is not None
    found: dict[Part, list[str]] = defaultdict(list)
    for line in served.values():
        for part in [
            part for (part, prompt), is_held in held.items() if is_held and prompt == line.prompt_id
        ]:
            found[part].append(line.channel_name)
    return dict(found)
