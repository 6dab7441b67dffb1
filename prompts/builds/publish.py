"""Adds versions: numbered without gaps, chained, contents kept once; labels that follow move along."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from personas.contents.services import store_contents
from personas.models import ReleasePolicy, Workspace
from prompts.builds.compiler import BuildResult
from prompts.hashed_rows import build_version_row
from prompts.labels.moves import PlannedMove, move_labels
from prompts.models import PRODUCTION, AgentPrompt, PromptVersion
from prompts.versions.lockfile import PreviousParts, build_lockfile, get_previous_parts, save_part_changes


@dataclass(frozen=True)
class BuildAuthor:
    """Who caused a build, and by what."""

    label: str
    message: str = ""
    causes: list[dict[str, Any]] = field(default_factory=list)


NewBuild = tuple[AgentPrompt, BuildResult, BuildAuthor]


def publish_versions(
    workspace: Workspace | int, fresh: Sequence[NewBuild], *, at: datetime
) -> list[PromptVersion]:
    """Store these builds as the next versions of their prompts, which the caller holds locked."""
    if not fresh:
        return []
    contents = {digest: data for _, made, _ in fresh for digest, data in made.packed.contents.items()}
    store_contents(workspace, contents)
    before = get_previous_parts(workspace, [prompt for prompt, _, _ in fresh])
    versions = [
        build_next_version(prompt, made, author, before.get(prompt.pk), at) for prompt, made, author in fresh
    ]
    PromptVersion.objects.in_workspace(workspace).bulk_create(versions)
    parts = [made.parts for _, made, _ in fresh]
    save_part_changes(workspace, zip(versions, parts, strict=True), before)
    for version in versions:
        version.prompt.latest = version
    advance_production(workspace, versions, at)
    return versions


def build_next_version(
    prompt: AgentPrompt, made: BuildResult, author: BuildAuthor, stood: PreviousParts | None, at: datetime
) -> PromptVersion:
    number, before = prompt.last_number + 1, stood.lockfile if stood else None
    version = PromptVersion(
        workspace_id=prompt.workspace_id,
        prompt=prompt,
        number=number,
        digest=made.packed.digest,
        text_digest=made.packed.text_digest,
        layout=made.gathered.layout,
        compiler=made.pins["compiler"],
        segments=made.packed.segments,
        tools=made.packed.tools,
        characters=len(made.prompt.text),
        tokens=made.tokens,
        sizes=made.sizes,
        report=made.packed.report,
        lockfile=build_lockfile(number, made.parts, made.pins["settings"], before),
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
    """Production goes along where the agent says so and nobody holds it back."""
    moves = [
        PlannedMove(version.prompt, PRODUCTION, version, "build", by=version.author_label)
        for version in versions
        if version.prompt.agent.release_policy == ReleasePolicy.AUTOMATIC and not version.prompt.is_held
    ]
    move_labels(workspace, moves, at=at)
