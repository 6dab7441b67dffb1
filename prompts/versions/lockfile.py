"""The parts of each latest version before a build, and what the next one holds other than that."""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from django.db.models import Q

from personas.models import Workspace
from prompts.models import AgentPrompt, PromptVersion, VersionPart
from prompts.versions.lockfiles import Before, Parts, base_of, is_whole, unpacked_parts
from prompts.versions.parts import Held, held_parts, part_changes


class Standing(NamedTuple):
    """A prompt before its next version: the lockfile to tell changes from, and the records it holds."""

    before: Before | None
    held: Held


def standings(workspace: Workspace | int, prompts: Sequence[AgentPrompt]) -> dict[int, Standing]:
    """Of prompts that have a version already; two queries for all."""
    latest = {prompt.pk: prompt.latest for prompt in prompts if prompt.latest}
    if not latest:
        return {}
    chains = lockfiles_since(workspace, latest)
    rows = PromptVersion.objects.in_workspace(workspace).filter(pk__in=[row.pk for row in latest.values()])
    found = {}
    for prompt, segments, tools in rows.values_list("prompt_id", "segments", "tools"):
        version, parts = latest[prompt], unpacked_parts(chains[prompt])
        # A chain that does not add up is not gone on with: the next lockfile stands by itself.
        sound = is_whole(version.lockfile, parts)
        before = (base_of(version.number, version.lockfile), parts) if sound else None
        found[prompt] = Standing(before, held_parts(segments, parts if tools else ()))
    return found


def lockfiles_since(
    workspace: Workspace | int, latest: Mapping[int, PromptVersion]
) -> dict[int, list[dict[str, Any]]]:
    """For each prompt the lockfiles from the last whole one on; those that are whole are at hand."""
    chains: dict[int, list[dict[str, Any]]] = {prompt: [] for prompt in latest}
    wanted = []
    for prompt, version in latest.items():
        base = base_of(version.number, version.lockfile)
        if base < version.number:
            wanted.append(Q(prompt=prompt, number__gte=base, number__lt=version.number))
    if wanted:
        rows = PromptVersion.objects.in_workspace(workspace).filter(reduce(or_, wanted)).order_by("number")
        for prompt, lockfile in rows.values_list("prompt_id", "lockfile"):
            chains[prompt].append(lockfile)
    for prompt, version in latest.items():
        chains[prompt].append(version.lockfile)
    return chains


def note_parts(
    workspace: Workspace | int,
    versions: Iterable[tuple[PromptVersion, Parts]],
    before: Mapping[int, Standing],
) -> None:
    """Only what differs from the version before: an edit of one record leaves one row."""
    rows = []
    for version, parts in versions:
        stood = before.get(version.prompt_id)
        holds = held_parts(version.segments, parts if version.tools else ())
        rows += [
            VersionPart(
                workspace_id=version.workspace_id,
                prompt=version.prompt,
                version=version,
                kind=kind,
                object_id=key,
                revision=revision,
            )
            for (kind, key), revision in part_changes(stood.held if stood else {}, holds).items()
        ]
    VersionPart.objects.in_workspace(workspace).bulk_create(rows, batch_size=1_000)
