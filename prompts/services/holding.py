"""Notes which records and files a version began or ceased to hold, for questions from their side."""

from collections.abc import Mapping, Sequence

from personas.models import Workspace
from prompts.lockfiles import unpacked_parts
from prompts.models import AgentPrompt, PromptVersion, VersionPart
from prompts.parts import Held, held_parts, part_changes

# Of each prompt, the parts of the version that its lockfile is told from.
Bases = Mapping[int, tuple[int, Mapping[str, str]]]


def parts_held(workspace: Workspace | int, prompts: Sequence[AgentPrompt], bases: Bases) -> dict[int, Held]:
    """What the latest version of each prompt holds; one query for all."""
    latest = {prompt.latest_id: prompt for prompt in prompts if prompt.latest_id}
    rows = PromptVersion.objects.in_workspace(workspace).filter(pk__in=latest)
    found = rows.values_list("prompt_id", "segments", "lockfile", "tools")
    return {
        prompt: held_parts(segments, offered(lockfile, bases.get(prompt), tools))
        for prompt, segments, lockfile, tools in found
    }


def offered(
    lockfile: Mapping[str, object], base: tuple[int, Mapping[str, str]] | None, tools: str
) -> list[str]:
    return [*unpacked_parts(lockfile, base[1] if base else None)] if tools else []


def note_parts(
    workspace: Workspace | int, versions: Sequence[PromptVersion], before: Mapping[int, Held], bases: Bases
) -> None:
    """Only what differs from the version before: an edit of one record leaves one row."""
    rows = []
    for version in versions:
        names = offered(version.lockfile, bases.get(version.prompt_id), version.tools)
        changes = part_changes(before.get(version.prompt_id, {}), held_parts(version.segments, names))
        rows += [
            VersionPart(
                workspace_id=version.workspace_id,
                prompt=version.prompt,
                version=version,
                kind=kind,
                object_id=key,
                revision=revision,
            )
            for (kind, key), revision in changes.items()
        ]
    VersionPart.objects.in_workspace(workspace).bulk_create(rows, batch_size=1_000)
