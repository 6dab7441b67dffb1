"""Builds what has changed: gather, assemble, and add a version where the words are others than before."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

import structlog
from django.db import DatabaseError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from personas.actors import SYSTEM_ACTOR
from personas.errors import DomainError
from personas.models import Agent, AgentChannel, Workspace
from personas.tenancy.models import get_upsert_fields
from prompts.builds.compiler import BuildResult, DigestCache, NotBuildable, compile_prompt
from prompts.builds.publish import BuildAuthor, publish_versions
from prompts.inputs import CollectedInputs, collect_inputs
from prompts.models import AgentPrompt, BuildCause, PromptVersion

log = structlog.get_logger(__name__)

BATCH_SIZE = 40
# By agent and channel.
LockedPrompts = dict[tuple[int, int], AgentPrompt]


class NotRebuildable(DomainError):
    """An agent that is out of use."""

    code = "archived"


@dataclass
class RebuildResult:
    """What came of a rebuild."""

    versions: list[PromptVersion] = field(default_factory=list)
    unchanged: int = 0
    failed: int = 0

    def __iadd__(self, other: "RebuildResult") -> Self:
        self.versions += other.versions
        self.unchanged += other.unchanged
        self.failed += other.failed
        return self


def rebuild_agents(workspace: Workspace | int, agent_ids: Iterable[int]) -> RebuildResult:
    """Build these agents on all their channels; batch by batch, so that no lock is held for long."""
    ids, built = sorted(set(agent_ids)), RebuildResult()
    for start in range(0, len(ids), BATCH_SIZE):
        built += rebuild_batch_with_retry(workspace, ids[start : start + BATCH_SIZE])
    return built


def rebuild_batch_with_retry(workspace: Workspace | int, agent_ids: Sequence[int]) -> RebuildResult:
    """Together, or, if the database refuses that, one by one, so that all are built but those at fault."""
    try:
        return rebuild_batch(workspace, agent_ids)
    except DatabaseError:
        if len(agent_ids) == 1:
            raise
        log.exception("build_batch_failed", agents=len(agent_ids))
    built, refused = RebuildResult(), None
    for pk in agent_ids:
        try:
            built += rebuild_batch(workspace, [pk])
        except DatabaseError as error:
            refused = error
    if refused:
        raise refused
    return built


def rebuild_agent(agent: Agent) -> RebuildResult:
    """By hand; an archived agent has no prompts to build."""
    if agent.is_archived:
        raise NotRebuildable(
            _("“%(agent)s” is archived. Restore it to build its prompts.") % {"agent": agent}
        )
    return rebuild_batch(agent.workspace_id, [agent.pk])


@transaction.atomic
def rebuild_batch(workspace: Workspace | int, agent_ids: Sequence[int]) -> RebuildResult:
    """All or nothing for the batch; a prompt that cannot be built keeps its versions and says why."""
    locked = lock_agent_prompts(workspace, agent_ids)
    # Read before the records and links are: a cause that comes later will be found by the next build.
    causes = list_pending_causes(workspace, agent_ids)
    prompts = lock_or_create_prompts(workspace, agent_ids, locked)
    now = timezone.now()
    agents = list(Agent.objects.in_workspace(workspace).filter(pk__in=agent_ids, archived_at=None))
    built, fresh = RebuildResult(), []
    digests: DigestCache = {}
    for gathered in collect_inputs(workspace, agents, at=now):
        prompt = prompts.get((gathered.agent.pk, gathered.channel.pk))
        if prompt is None:
            # Linked since the pairs were held; the cause of that is still waiting.
            continue
        made = try_compile_prompt(prompt, gathered, digests)
        set_build_times(prompt, gathered, now)
        if made is None:
            built.failed += 1
        elif prompt.latest is not None and made.packed.digest == prompt.latest.digest:
            built.unchanged += 1
        else:
            fresh.append((prompt, made, get_build_author(causes[gathered.agent.pk])))
    built.versions = publish_versions(workspace, fresh, at=now)
    finish_builds(workspace, prompts.values(), causes, now)
    return built


def lock_or_create_prompts(
    workspace: Workspace | int, agent_ids: Sequence[int], locked: LockedPrompts | None = None
) -> LockedPrompts:
    """The rows of every pair, locked, made where missing, and what each was built as last."""
    found = lock_agent_prompts(workspace, agent_ids) if locked is None else locked
    links = AgentChannel.objects.in_workspace(workspace).filter(
        agent__in=agent_ids, agent__archived_at=None, channel__archived_at=None
    )
    live = set(links.values_list("agent_id", "channel_id"))
    if missing := sorted(live - found.keys()):
        workspace_id = workspace if isinstance(workspace, int) else workspace.pk
        AgentPrompt.objects.in_workspace(workspace).bulk_create(
            [
                AgentPrompt(workspace_id=workspace_id, agent_id=agent, channel_id=channel)
                for agent, channel in missing
            ],
            ignore_conflicts=True,
        )
        found = lock_agent_prompts(workspace, agent_ids)
    latest = PromptVersion.objects.in_workspace(workspace).filter(
        pk__in=[row.latest_id for row in found.values() if row.latest_id]
    )
    versions = latest.only("digest", "number", "lockfile", "prompt_id", "workspace_id").in_bulk()
    for pair, row in found.items():
        row.is_live = pair in live
        row.latest = versions.get(row.latest_id) if row.latest_id else None
    return found


def lock_agent_prompts(workspace: Workspace | int, agent_ids: Sequence[int]) -> LockedPrompts:
    """In one order, so that no two builds cross."""
    rows = AgentPrompt.objects.in_workspace(workspace).filter(agent__in=agent_ids)
    held = rows.select_related("agent", "channel").order_by("pk").select_for_update(of=("self",))
    return {(row.agent_id, row.channel_id): row for row in held}


def list_pending_causes(workspace: Workspace | int, agent_ids: Sequence[int]) -> dict[int, list[BuildCause]]:
    found: dict[int, list[BuildCause]] = defaultdict(list)
    for cause in BuildCause.objects.in_workspace(workspace).filter(agent__in=agent_ids).order_by("pk"):
        found[cause.agent_id].append(cause)
    return found


def try_compile_prompt(
    prompt: AgentPrompt, gathered: CollectedInputs, digests: DigestCache
) -> BuildResult | None:
    """One bad agent must not keep the others from being built."""
    try:
        made = compile_prompt(gathered, digests)
    except NotBuildable as error:
        prompt.problem = f"Not built: {error}"[:1_000]
        return None
    except Exception as error:
        log.exception("prompt_build_failed", agent=gathered.agent.pk, channel=gathered.channel.pk)
        prompt.problem = f"Not built, by a fault of ours ({type(error).__name__}). It is in the log."
        return None
    prompt.problem = ""
    return made


def set_build_times(prompt: AgentPrompt, gathered: CollectedInputs, now: datetime) -> None:
    prompt.built_at, prompt.changes_at = now, gathered.changes_at


def get_build_author(causes: Sequence[BuildCause]) -> BuildAuthor:
    """Whose change this is: of several, the last speaks."""
    told: list[dict[str, Any]] = [cause.cause for cause in causes]
    if not told:
        return BuildAuthor(SYSTEM_ACTOR.label, "", [{"kind": "rebuild"}])
    last = told[-1]
    return BuildAuthor(last.get("by") or SYSTEM_ACTOR.label, last.get("message", ""), told[-20:])


def finish_builds(
    workspace: Workspace | int,
    prompts: Iterable[AgentPrompt],
    causes: dict[int, list[BuildCause]],
    now: datetime,
) -> None:
    """Write how each prompt stands, and let go of the causes that were taken in."""
    columns = ["last_number", "last_hash", "latest", "last_move", "last_move_hash"]
    columns += ["is_live", "built_at", "changes_at", "problem"]
    # All are there already; Django's bulk update would spend more on its one long statement than this takes.
    AgentPrompt.objects.in_workspace(workspace).bulk_create(
        prompts, update_conflicts=True, unique_fields=get_upsert_fields(), update_fields=columns
    )
    done = [cause.pk for rows in causes.values() for cause in rows]
    BuildCause.objects.in_workspace(workspace).filter(pk__in=done).delete()
