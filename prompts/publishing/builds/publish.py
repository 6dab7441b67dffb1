"""Store builds as new versions, which are numbered without gaps and hash-chained per prompt.

Equal texts are stored once per workspace. For agents with the automatic release policy, the label
`production` moves to the new version.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from core.db.fast import WriteBatch
from personas.contents.services import SaltedDigests
from personas.events.services import add_events_to_batch, build_event
from personas.models import Event, Workspace
from prompts.models import PRODUCTION, AgentPrompt, MoveReason, PromptLabel, PromptVersion
from prompts.proof.canonical import json_digest
from prompts.proof_rows import build_version_row
from prompts.publishing.builds.compiler import BuildResult
from prompts.publishing.labels.change_recorder import get_change_recorder
from prompts.publishing.labels.moves import build_move_events, move_labels
from prompts.publishing.labels.planned_moves import PlannedMove
from prompts.publishing.versions.lockfile import (
    PartDigests,
    PreviousParts,
    build_lockfile,
    get_previous_parts,
    save_part_changes,
)
from prompts.publishing.versions.segments import StoredSegments


@dataclass(frozen=True)
class BuildAuthor:
    """Who caused a build, with the message of the change and all its causes. Stored in the version."""

    label: str
    message: str = ""
    causes: list[dict[str, Any]] = field(default_factory=list)


NewBuild = tuple[AgentPrompt, BuildResult, BuildAuthor]


@dataclass(frozen=True)
class StoredBuild:
    """A build whose contents are stored, with their digests."""

    segments: StoredSegments
    parts: PartDigests
    # The digest of the input manifest.
    inputs: str


@dataclass(frozen=True)
class PublishRows:
    """What is known before versions are published, so that they are stored with fewer round trips."""

    # Contents and rows are inserted when the batch is sent.
    batch: WriteBatch
    # Primary keys for the versions, if the database can reserve them.
    version_ids: Sequence[int] | None = None
    # The current labels of the prompts.
    labels: Sequence[PromptLabel] | None = None
    # The events of the builds, which the caller records.
    events: list[Event] = field(default_factory=list)


def publish_versions(
    digests: SaltedDigests, builds: Sequence[NewBuild], *, at: datetime, known: PublishRows | None = None
) -> list[PromptVersion]:
    """Store the builds as the next versions of their prompts, and let production follow them.

    The caller must have locked the prompts. `digests` may have digests of contents that are known already.
    With `known`, the caller must send its batch.
    """
    rows = known or PublishRows(WriteBatch())
    versions = store_versions(digests, builds, at=at, known=rows)
    rows.events.extend(
        build_event(row.workspace_id, "version.created", version_event_data(row)) for row in versions
    )
    advance_production(digests.workspace_id, versions, at, rows)
    if known is None:
        add_events_to_batch(rows.events, rows.batch)
        rows.batch.send()
    return versions


def store_versions(
    digests: SaltedDigests, builds: Sequence[NewBuild], *, at: datetime, known: PublishRows | None = None
) -> list[PromptVersion]:
    """Store the builds as the next versions of their prompts, at most one of each prompt."""
    if not builds:
        return []
    workspace_id, batch = digests.workspace_id, known.batch if known else None
    previous = get_previous_parts(workspace_id, [prompt for prompt, _, _ in builds])
    stored = store_builds(digests, [build for _, build, _ in builds], batch)
    versions = [
        build_next_version(prompt, build, one, author, previous.get(prompt.pk), at=at)
        for (prompt, build, author), one in zip(builds, stored, strict=True)
    ]
    if known and known.version_ids is not None:
        for version, pk in zip(versions, known.version_ids, strict=False):
            version.pk = pk
        PromptVersion.objects.insert(versions, batch=batch, has_keys=True)
    else:
        PromptVersion.objects.insert(versions)
    parts = [one.parts for one in stored]
    save_part_changes(zip(versions, parts, strict=True), previous, batch)
    recorder = get_change_recorder()
    for version in versions:
        if recorder is not None:
            recorder.record_version(version, version.prompt.latest)
        version.prompt.latest, version.prompt.report = version, version.report
    return versions


def store_builds(
    digests: SaltedDigests, builds: Sequence[BuildResult], batch: WriteBatch | None = None
) -> list[StoredBuild]:
    """Store the contents of the builds: what may be erased, and the lists of inputs that name it."""
    erasable: dict[str, bytes] = {}
    for build in builds:
        erasable |= build.erasable_contents
    stored: list[StoredBuild] = []

    def build_lists() -> dict[str, bytes]:
        stored.clear()
        lists: dict[str, bytes] = {}
        for build in builds:
            inputs = build.pack_inputs(digests.by_plain)
            lists |= inputs.contents
            segments = build.packed.apply_salts(digests.by_plain)
            parts = build.get_part_digests(digests.by_plain)
            stored.append(StoredBuild(segments, parts, inputs.digest))
        return lists

    digests.store_with_lists(erasable, build_lists, batch)
    return stored


def build_next_version(
    prompt: AgentPrompt,
    build: BuildResult,
    stored: StoredBuild,
    author: BuildAuthor,
    previous: PreviousParts | None,
    *,
    at: datetime,
) -> PromptVersion:
    number, before = prompt.last_number + 1, previous.lockfile if previous else None
    segments = stored.segments
    version = PromptVersion(
        workspace_id=prompt.workspace_id,
        prompt=prompt,
        number=number,
        digest=segments.digest,
        text_digest=segments.text_digest,
        layout=build.collected.layout,
        compiler=build.pins["compiler"],
        segments=segments.segments,
        tools=segments.tools,
        skill_files=segments.skill_files,
        characters=len(build.prompt.text),
        tokens=build.tokens,
        sizes=build.sizes,
        report=segments.report,
        lockfile=build_lockfile(number, stored.parts, build.pins["settings"], stored.inputs, before),
        causes=author.causes,
        author_label=author.label[:254],
        message=author.message[:200],
        created_at=at,
        previous_hash=prompt.last_hash,
    )
    # The columns contain only plain JSON values, so `json_digest`, which converts none, can be used.
    row = build_version_row(version, hash_column=json_digest)
    version.hash = row.hash(version.previous_hash)
    prompt.last_number, prompt.last_hash = version.number, version.hash
    return version


def advance_production(
    workspace: Workspace | int, versions: Sequence[PromptVersion], at: datetime, known: PublishRows
) -> None:
    """Move `production` to the new versions.

    Only for agents with the automatic release policy, and only for prompts whose production is not pinned.
    """
    moves = [
        PlannedMove(version.prompt, PRODUCTION, version, MoveReason.BUILD, by=version.author_label)
        for version in versions
        if not version.prompt.is_reviewed and not version.prompt.is_pinned
    ]
    label_moves = move_labels(workspace, moves, at=at, batch=known.batch, labels=known.labels)
    known.events.extend(build_move_events(label_moves))


def version_event_data(version: PromptVersion) -> dict[str, Any]:
    prompt = version.prompt
    return {
        "agent": prompt.agent.slug,
        "channel": prompt.channel.slug,
        "version_id": version.pk,
        "number": version.number,
        "digest": version.digest,
    }
