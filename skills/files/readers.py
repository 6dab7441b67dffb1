"""Which agents are given which files: counted for many files at once."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable

from personas.models import Workspace
from skills.models import ContextFile, Reach
from skills.sources.readers import Outlook, outlooks_of

Paths = dict[int, set[str]]


def known_paths(workspace: Workspace, sources: Collection[int]) -> tuple[Paths, Paths]:
    """By source: every path that has a row, and those that prompts can come upon now."""
    every: Paths = defaultdict(set)
    live: Paths = defaultdict(set)
    if not sources:
        return every, live
    rows = ContextFile.objects.in_workspace(workspace).filter(source__in=sources).order_by()
    columns = rows.values_list("source_id", "path", "is_ignored", "is_there", "in_force_id")
    for source_id, path, is_ignored, is_there, in_force in columns:
        every[source_id].add(path)
        if not is_ignored and (is_there or in_force):
            live[source_id].add(path)
    return every, live


def reader_counts(workspace: Workspace, files: Collection[ContextFile], live: Paths) -> Counter[int]:
    """How many live agents' rules name each file, by its id; of a file that is gone, how many would."""
    found = [file for file in files if file.file_kind != "skill" or file.reach == Reach.FOUND]
    here: Paths = defaultdict(set)
    gone: Paths = defaultdict(set)
    for file in found:
        (here if file.path in live[file.source_id] else gone)[file.source_id].add(file.path)
    named: Counter[tuple[int, str]] = Counter()
    for outlook, agents in shared(outlooks_of(workspace).values()) if found else ():
        source = outlook.source.pk
        for asked, stored in ((here, live[source]), (gone, live[source] | gone[source])):
            if asked[source]:
                paths = {path for _, path in outlook.paths(stored)} & asked[source]
                named.update({(source, path): agents for path in paths})
    return Counter({file.pk: named[file.source_id, file.path] for file in found})


def shared(outlooks: Iterable[Outlook]) -> list[tuple[Outlook, int]]:
    """Each different outlook once, with how many live agents have it: working one out takes a while."""
    sizes: Counter[tuple[int, str, str]] = Counter()
    examples: dict[tuple[int, str, str], Outlook] = {}
    for one in outlooks:
        if one.agent.archived_at is None:
            key = (one.source.pk, one.harness.name, one.working_directory)
            sizes[key] += 1
            examples[key] = one
    return [(examples[key], size) for key, size in sizes.items()]
