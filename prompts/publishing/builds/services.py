"""Rebuild prompts: collect the inputs, compile them, and add a version if the text has changed."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

import structlog
from django.db import DatabaseError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from core.db.fast import WriteBatch, build_key_query
from personas.actors import SYSTEM_ACTOR
from personas.contents.services import ContentsConflict, SaltedDigests
from personas.errors import DomainError
from personas.events.services import add_events_to_batch, build_event, confirm_events
from personas.models import Agent, Event, Workspace
from personas.tenancy.models import get_upsert_fields
from prompts.models import PRODUCTION, AgentPrompt, BuildCause, PromptLabel, PromptVersion
from prompts.publishing.builds.build_rows import (
    BuildRows,
    LockedPrompts,
    PendingCauses,
    lock_and_load,
    query_agent_labels,
    query_latest_versions,
    query_locked_prompts,
    query_pending_causes,
)
from prompts.publishing.builds.compiler import BuildResult, NotBuildable, compile_prompt
from prompts.publishing.builds.publish import BuildAuthor, PublishRows, publish_versions
from prompts.publishing.inputs import CollectedInputs, InputCollector
from prompts.publishing.labels.change_recorder import forget_changes_on_error
from prompts.publishing.labels.moves import end_kept_review
from prompts.publishing.versions.selectors import list_erased_versions
from prompts.publishing.versions.stored_inputs import PartEncoder

log = structlog.get_logger(__name__)

BATCH_SIZE = 40
# How often a build is repeated because a concurrent one stored the same contents.
MAX_CONFLICTS = 3
MAX_CAUSES = 20
NewCauses = Mapping[int, Sequence[dict[str, Any]]]


class NotRebuildable(DomainError):
    """The agent cannot be rebuilt, because it is archived."""

    code = "archived"


@dataclass
class RebuildResult:
    """Outcome of a rebuild: new versions, and numbers of unchanged and failed prompts."""

    versions: list[PromptVersion] = field(default_factory=list)
    unchanged: int = 0
    failed: int = 0

    def __iadd__(self, other: "RebuildResult") -> Self:
        self.versions += other.versions
        self.unchanged += other.unchanged
        self.failed += other.failed
        return self


def rebuild_agents(workspace: Workspace | int, agent_ids: Iterable[int]) -> RebuildResult:
    """Rebuild the prompts of these agents on all their channels.

    Each batch of agents is one transaction, so that locks are held briefly.
    """
    ids, result = sorted(set(agent_ids)), RebuildResult()
    for start in range(0, len(ids), BATCH_SIZE):
        result += rebuild_batch_with_retry(workspace, ids[start : start + BATCH_SIZE])
    return result


def rebuild_batch_with_retry(workspace: Workspace | int, agent_ids: Sequence[int]) -> RebuildResult:
    """Rebuild a batch in one transaction. After a database error, rebuild each agent in its own transaction.

    One faulty agent then does not prevent the others from being built. The last error is raised at the end.
    """
    try:
        return rebuild_batch(workspace, agent_ids)
    except DatabaseError:
        if len(agent_ids) == 1:
            raise
        log.exception("build_batch_failed", agents=len(agent_ids))
    result, failure = RebuildResult(), None
    for pk in agent_ids:
        try:
            result += rebuild_batch(workspace, [pk])
        except DatabaseError as error:
            failure = error
    if failure:
        raise failure
    return result


def rebuild_agent(agent: Agent) -> RebuildResult:
    """Rebuild one agent at a user's request; raise NotRebuildable if it is archived."""
    if agent.is_archived:
        raise NotRebuildable(
            _("“%(agent)s” is archived. Restore it to build its prompts.") % {"agent": agent}
        )
    return rebuild_batch(agent.workspace_id, [agent.pk])


class TooManyPrompts(Exception):
    """More prompts are pending than may be built at once. Nothing was built."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count


def rebuild_pending_agents(
    workspace: Workspace | int,
    agent_ids: Sequence[int],
    *,
    max_prompts: int,
    new_causes: NewCauses | None = None,
) -> RebuildResult:
    """Rebuild the agents that have pending causes. Raise TooManyPrompts if these have more prompts.

    `new_causes` are those of a change in the current transaction that are not stored. If building fails, the
    caller must store them.
    """
    try:
        return rebuild_batch(workspace, agent_ids, max_prompts=max_prompts, new_causes=new_causes)
    except DatabaseError:
        if len(agent_ids) == 1 or new_causes:
            raise
        return rebuild_agents(workspace, agent_ids)


def rebuild_batch(
    workspace: Workspace | int,
    agent_ids: Sequence[int],
    *,
    max_prompts: int | None = None,
    new_causes: NewCauses | None = None,
) -> RebuildResult:
    """Rebuild the prompts of a batch of agents in one transaction.

    A prompt that cannot be compiled keeps its latest version; the error is stored in its column `problem`.
    With `max_prompts`, only agents with pending causes are built: see `rebuild_pending_agents`.
    """
    for _attempt in range(MAX_CONFLICTS):
        with suppress(ContentsConflict), forget_changes_on_error():
            return try_rebuild_batch(workspace, agent_ids, max_prompts=max_prompts, new_causes=new_causes)
    with forget_changes_on_error():
        return try_rebuild_batch(workspace, agent_ids, max_prompts=max_prompts, new_causes=new_causes)


@transaction.atomic
def try_rebuild_batch(
    workspace: Workspace | int,
    agent_ids: Sequence[int],
    *,
    max_prompts: int | None,
    new_causes: NewCauses | None,
) -> RebuildResult:
    """Rebuild a batch. Raise ContentsConflict if a concurrent transaction stores the same contents."""
    if max_prompts is not None and new_causes is None:
        agent_ids = sorted({cause.agent_id for cause in query_pending_causes(workspace, agent_ids)})
    if not agent_ids:
        return RebuildResult()
    rows = lock_and_load(workspace, agent_ids)
    loaded, causes = rows.loaded, rows.causes
    for pk, details in (new_causes or {}).items():
        causes[pk] += [BuildCause(agent_id=pk, cause=detail) for detail in details]
    prompts = lock_or_create_prompts(workspace, agent_ids, rows)
    count = sum(prompt.is_active for prompt in prompts.values())
    if max_prompts is not None and count > max_prompts:
        raise TooManyPrompts(count)
    now = timezone.now()
    result = RebuildResult()
    builds: list[tuple[AgentPrompt, BuildResult]] = []
    failures: list[Event] = []
    encoder = PartEncoder()
    for collected in InputCollector(loaded, now).collect_all():
        prompt = prompts.get((collected.agent.pk, collected.channel.pk))
        if prompt is None:
            # The channel was added after the prompts were locked. The cause of that change is not deleted
            # here and leads to another build.
            continue
        had_problem = bool(prompt.problem)
        build = try_compile_prompt(prompt, collected, encoder)
        set_build_times(prompt, collected, now)
        if build is None:
            result.failed += 1
            failures += [] if had_problem else [build_failure_event(prompt)]
            continue
        builds.append((prompt, build))
    digests = SaltedDigests(workspace)
    changed, version_ids = list_changed_builds(digests, builds)
    result.unchanged = len(builds) - len(changed)
    new = [(prompt, build, get_build_author(causes[prompt.agent_id])) for prompt, build in changed]
    writes = WriteBatch()
    known = PublishRows(writes, version_ids, rows.labels)
    result.versions = publish_versions(digests, new, at=now, known=known)
    waiting_events = add_events_to_batch([*failures, *known.events], writes)
    end_kept_reviews(prompts.values(), rows.labels)
    finish_builds(workspace, list(prompts.values()), causes, writes)
    confirm_events(waiting_events)
    return result


def end_kept_reviews(prompts: Iterable[AgentPrompt], labels: Sequence[PromptLabel]) -> None:
    """End the reviews that were kept when they were lifted, where production is not behind the build."""
    production = {label.prompt_id: label.version for label in labels if label.name == PRODUCTION}
    for prompt in prompts:
        if prompt.is_review_kept and not prompt.problem:
            end_kept_review(prompt, production.get(prompt.pk))


def build_failure_event(prompt: AgentPrompt) -> Event:
    data = {"agent": prompt.agent.slug, "channel": prompt.channel.slug}
    return build_event(prompt.workspace_id, "build.failed", data)


def list_changed_builds(
    digests: SaltedDigests, builds: Sequence[tuple[AgentPrompt, BuildResult]]
) -> tuple[list[tuple[AgentPrompt, BuildResult]], list[int] | None]:
    """List the builds that differ from the latest version, and store the reports of the others.

    Return also primary keys for as many versions as there are builds, if the database can reserve them.
    """
    names = {name for _, build in builds for name in build.packed.contents}
    if len(builds) == 1:
        # A single build has most likely changed. Its inputs are then needed too, so use the same query.
        names |= builds[0][1].erasable_contents.keys()
    reserve_ids = build_key_query(PromptVersion, len(builds)) if builds else None
    reserved = digests.lock_and_find(names, [reserve_ids] if reserve_ids else [])
    changed: list[tuple[AgentPrompt, BuildResult]] = []
    unchanged: list[tuple[AgentPrompt, BuildResult]] = []
    for prompt, build in builds:
        is_new = prompt.latest is None or not is_unchanged(build, prompt.latest, digests)
        (changed if is_new else unchanged).append((prompt, build))
    # A version with an erased record is replaced even if another record has the same text.
    erased = list_erased_versions(
        digests.workspace_id, {prompt.latest.pk for prompt, _ in unchanged if prompt.latest}
    )
    changed += [(prompt, build) for prompt, build in unchanged if prompt.latest_id in erased]
    unchanged = [(prompt, build) for prompt, build in unchanged if prompt.latest_id not in erased]
    reports = {build.packed.report: build.packed.contents[build.packed.report] for _, build in unchanged}
    digests.store(reports)
    for prompt, build in unchanged:
        prompt.report = digests.by_plain[build.packed.report].digest
    return changed, [pk for (pk,) in reserved[0]] if reserved else None


def is_unchanged(build: BuildResult, latest: PromptVersion, digests: SaltedDigests) -> bool:
    """Whether the latest version has the same text."""
    # If a content is new to the workspace, the digests cannot be equal. They do not cover the report.
    is_all_known = digests.missing.isdisjoint(build.packed.contents.keys() - {build.packed.report})
    return is_all_known and build.packed.apply_salts(digests.by_plain).digest == latest.digest


def lock_or_create_prompts(
    workspace: Workspace | int, agent_ids: Sequence[int], rows: BuildRows | None = None
) -> LockedPrompts:
    """Lock the prompts of all agents and channels, create missing prompts, and set the latest versions."""
    rows = rows or lock_and_load(workspace, agent_ids)
    prompts, loaded = rows.prompts, rows.loaded
    live = {(agent.pk, channel.pk) for agent in loaded.agents for channel in loaded.channels[agent.pk]}
    if missing := sorted(live - prompts.keys()):
        workspace_id = workspace if isinstance(workspace, int) else workspace.pk
        kept = {row.agent_id for row in prompts.values() if row.is_review_kept}
        AgentPrompt.objects.in_workspace(workspace).bulk_create(
            [
                AgentPrompt(
                    workspace_id=workspace_id,
                    agent_id=agent,
                    channel_id=channel,
                    # Text that waits for approval must not go to production on a new channel.
                    is_review_kept=agent in kept,
                    is_pinned=agent in kept,
                )
                for agent, channel in missing
            ],
            ignore_conflicts=True,
        )
        locked = query_locked_prompts(workspace, agent_ids)
        prompts = {(row.agent_id, row.channel_id): row for row in locked}
        rows.latest = query_latest_versions(workspace, agent_ids)
        rows.labels = query_agent_labels(workspace, agent_ids)
    versions = {version.pk: version for version in rows.latest}
    for pair, row in prompts.items():
        row.is_active = pair in live
        row.latest = versions.get(row.latest_id) if row.latest_id else None
    return prompts


def try_compile_prompt(
    prompt: AgentPrompt, collected: CollectedInputs, encoder: PartEncoder
) -> BuildResult | None:
    """Compile a prompt. On failure, set `prompt.problem` and return None, so that the batch continues."""
    try:
        build = compile_prompt(collected, encoder)
    except NotBuildable as error:
        prompt.problem = f"Not built: {error}"[:1_000]
        return None
    except Exception as error:
        log.exception("prompt_build_failed", agent=collected.agent.pk, channel=collected.channel.pk)
        prompt.problem = (
            f"Not built because of an internal error ({type(error).__name__}). See the server log."
        )
        return None
    prompt.problem = ""
    return build


def set_build_times(prompt: AgentPrompt, collected: CollectedInputs, now: datetime) -> None:
    prompt.built_at, prompt.changes_at = now, collected.changes_at


def get_build_author(causes: Sequence[BuildCause]) -> BuildAuthor:
    """Return author and message of the last cause, together with the last 20 causes.

    Of authors without one of these, the last cause is kept too: they may not approve their own change.
    """
    details: list[dict[str, Any]] = [cause.cause for cause in causes]
    if not details:
        return BuildAuthor(SYSTEM_ACTOR.label, "", [{"kind": "rebuild"}])
    last = details[-1]
    recent = details[-MAX_CAUSES:]
    authors = {cause.get("by") for cause in recent}
    others = {cause["by"]: cause for cause in details[:-MAX_CAUSES] if cause.get("by") not in authors}
    kept = [*others.values(), *recent]
    return BuildAuthor(last.get("by") or SYSTEM_ACTOR.label, last.get("message", ""), kept)


def finish_builds(
    workspace: Workspace | int,
    prompts: Sequence[AgentPrompt],
    causes: PendingCauses,
    batch: WriteBatch,
) -> None:
    """Save the state of each prompt, send the batch and delete the causes that this build consumed."""
    columns = ["last_number", "last_hash", "latest", "last_move", "last_move_hash"]
    columns += ["is_active", "built_at", "changes_at", "report", "problem", "is_review_kept"]
    # An upsert is faster than bulk_update, which builds long CASE expressions. All rows exist, so none is
    # inserted.
    AgentPrompt.objects.insert(
        prompts, batch=batch, update_conflicts=True, unique_fields=get_upsert_fields(), update_fields=columns
    )
    batch.send()
    done = [cause.pk for rows in causes.values() for cause in rows if cause.pk]
    if done:
        BuildCause.objects.in_workspace(workspace).filter(pk__in=done).delete()
