"""Store builds as new versions, which are numbered without gaps and hash-chained per prompt.

Equal texts are stored once per workspace. For agents with the automatic release policy, the label
`production` moves to the new version.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from personas.contents.services import store_contents
from personas.models import ReleasePolicy, Workspace
from prompts.builds.compiler import BuildResult
from prompts.hashed_rows import build_version_row
from prompts.labels.moves import PlannedMove, move_labels
from prompts.models import PRODUCTION, AgentPrompt, MoveReason, PromptVersion
from prompts.versions.lockfile import PreviousParts, build_lockfile, get_previous_parts, save_part_changes


@dataclass(frozen=True)
class BuildAuthor:
    """Who caused a build, with the message of the change and all its causes. Stored in the version."""

    label: str
    message: str = ""
    causes: list[dict[str, Any]] = field(default_factory=list)


NewBuild = tuple[AgentPrompt, BuildResult, BuildAuthor]


def publish_versions(
    workspace: Workspace | int, builds: Sequence[NewBuild], *, at: datetime
) -> list[PromptVersion]:
    """Store the builds as the next versions of their prompts, and let production follow them.

    The caller must have locked the prompts.
    """
    versions = store_versions(workspace, builds, at=at)
    advance_production(workspace, versions, at)
    return versions


def store_versions(
    workspace: Workspace | int, builds: Sequence[NewBuild], *, at: datetime
) -> list[PromptVersion]:
    """Store the builds as the next versions of their prompts, at most one of each prompt."""
    if not builds:
        return []
    previous = get_previous_parts(workspace, [prompt for prompt, _, _ in builds])
    contents: dict[str, bytes] = {}
    versions = []
    for prompt, build, author in builds:
        inputs, before = build.pack_inputs(), previous.get(prompt.pk)
        contents |= build.stored.contents | drop_stored_parts(inputs.contents, prompt, before)
        versions.append(build_next_version(prompt, build, author, before, at=at, inputs=inputs.digest))
    store_contents(workspace, contents)
    PromptVersion.objects.in_workspace(workspace).bulk_create(versions)
    parts = [build.parts for _, build, _ in builds]
    save_part_changes(workspace, zip(versions, parts, strict=True), previous)
    for version in versions:
        version.prompt.latest = version
    return versions


def drop_stored_parts(
    contents: dict[str, bytes], prompt: AgentPrompt, previous: PreviousParts | None
) -> dict[str, bytes]:
    """Leave out the parts of the previous version: their contents are stored already."""
    if previous is None or previous.lockfile is None or "inputs" not in get_latest_lockfile(prompt):
        return contents
    stored = set(previous.lockfile[1].values())
    return {digest: data for digest, data in contents.items() if digest not in stored}


def get_latest_lockfile(prompt: AgentPrompt) -> dict[str, Any]:
    return prompt.latest.lockfile if prompt.latest else {}


def build_next_version(
    prompt: AgentPrompt,
    build: BuildResult,
    author: BuildAuthor,
    previous: PreviousParts | None,
    *,
    at: datetime,
    inputs: str,
) -> PromptVersion:
    number, before = prompt.last_number + 1, previous.lockfile if previous else None
    version = PromptVersion(
        workspace_id=prompt.workspace_id,
        prompt=prompt,
        number=number,
        digest=build.stored.digest,
        text_digest=build.stored.text_digest,
        layout=build.collected.layout,
        compiler=build.pins["compiler"],
        segments=build.stored.segments,
        tools=build.stored.tools,
        characters=len(build.prompt.text),
        tokens=build.tokens,
        sizes=build.sizes,
        report=build.stored.report,
        lockfile=build_lockfile(number, build.parts, build.pins["settings"], inputs, before),
        causes=author.causes,
        author_label=author.label[:254],
        message=author.message[:200],
        created_at=at,
        previous_hash=prompt.last_hash,
    )
    version.hash = build_version_row(version).hash(version.previous_hash)
    prompt.last_number, prompt.last_hash = version.number, version.hash
    return version


def advance_production(workspace: Workspace | int, versions: Sequence[PromptVersion], at: datetime) -> None:
    """Move `production` to the new versions.

    Only for agents with the automatic release policy, and only for prompts whose production is not pinned.
    """
    moves = [
        PlannedMove(version.prompt, PRODUCTION, version, MoveReason.BUILD, by=version.author_label)
        for version in versions
        if version.prompt.agent.release_policy == ReleasePolicy.AUTOMATIC and not version.prompt.is_held
    ]
    move_labels(workspace, moves, at=at)
