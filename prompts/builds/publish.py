"""Adds versions: numbered without gaps, chained, contents kept once; labels that follow move along."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from personas.contents.services import keep_contents
from personas.models import ReleasePolicy, Workspace
from prompts.builds.compiler import Compiled
from prompts.hashed_rows import version_row
from prompts.labels.moves import Move, move_labels
from prompts.models import PRODUCTION, AgentPrompt, PromptVersion
from prompts.versions.lockfile import Standing, note_parts, packed_lockfile, standings


@dataclass(frozen=True)
class Author:
    """Who caused a build, and by what."""

    label: str
    message: str = ""
    causes: list[dict[str, Any]] = field(default_factory=list)


Fresh = tuple[AgentPrompt, Compiled, Author]


def publish(workspace: Workspace | int, fresh: Sequence[Fresh], *, at: datetime) -> list[PromptVersion]:
    """Store these builds as the next versions of their prompts, which the caller holds locked."""
    if not fresh:
        return []
    contents = {digest: data for _, made, _ in fresh for digest, data in made.packed.contents.items()}
    keep_contents(workspace, contents)
    before = standings(workspace, [prompt for prompt, _, _ in fresh])
    versions = [
        next_version(prompt, made, author, before.get(prompt.pk), at) for prompt, made, author in fresh
    ]
    PromptVersion.objects.in_workspace(workspace).bulk_create(versions)
    parts = [made.parts for _, made, _ in fresh]
    note_parts(workspace, zip(versions, parts, strict=True), before)
    for version in versions:
        version.prompt.latest = version
    follow(workspace, versions, at)
    return versions


def next_version(
    prompt: AgentPrompt, made: Compiled, author: Author, stood: Standing | None, at: datetime
) -> PromptVersion:
    number, before = prompt.last_number + 1, stood.before if stood else None
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
        lockfile=packed_lockfile(number, made.parts, made.pins["settings"], before),
        causes=author.causes,
        author_label=author.label[:254],
        message=author.message[:200],
        created_at=at,
        previous_hash=prompt.last_hash,
    )
    version.hash = version_row(version).hash(version.previous_hash)
    prompt.last_number, prompt.last_hash = version.number, version.hash
    return version


def follow(workspace: Workspace | int, versions: Sequence[PromptVersion], at: datetime) -> None:
    """Production goes along where the agent says so and nobody holds it back."""
    moves = [
        Move(version.prompt, PRODUCTION, version, "build", by=version.author_label)
        for version in versions
        if version.prompt.agent.release_policy == ReleasePolicy.AUTOMATIC and not version.prompt.is_held
    ]
    move_labels(workspace, moves, at=at)
