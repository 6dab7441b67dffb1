"""Receiver of the signal `agent_changed`: rebuild the agents' prompts.

If an edit affects few prompts, they are built in its own transaction; otherwise workers build them. What is
not built yet has a row that says why it must be.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Model
from django.dispatch import receiver

from core.db.before_commit import before_commit
from personas.actors import SYSTEM_ACTOR, Actor
from personas.models import Agent, ReleasePolicy, Revision
from personas.signals import agent_changed
from prompts.models import BuildCause
from prompts.publishing.builds.causes import add_build_causes
from prompts.publishing.builds.middleware import get_rebuild_counts
from prompts.publishing.builds.progress import list_agent_channels
from prompts.publishing.builds.services import NewCauses, TooManyPrompts, rebuild_pending_agents
from prompts.publishing.labels.change_recorder import UnreviewedChange, get_change_recorder
from prompts.publishing.labels.services import keep_review

log = structlog.get_logger(__name__)
# Maximum number of prompts that are built for a review. These builds are not committed.
MAX_REVIEWED_PROMPTS = 200


@dataclass(frozen=True)
class AgentChange:
    """A change of records, and the agents whose prompts it may change."""

    workspace_id: int
    agent_ids: list[int]
    cause: dict[str, Any]

    def save_causes(self) -> None:
        add_build_causes(self.workspace_id, self.agent_ids, self.cause)


@receiver(agent_changed)
def record_change(
    sender: type[Model],
    *,
    workspace_id: int,
    agent_ids: Iterable[int],
    cause: Any = None,
    by: Actor = SYSTEM_ACTOR,
    **_: Any,
) -> None:
    """Build the prompts at the end of the transaction of the change, or record the cause in it.

    If the change lifts the review of an agent, production stays where it is: text that waits for an approval
    must not go there with the next build, and still needs it.
    """
    if (recorder := get_change_recorder()) is not None:
        recorder.check_lock(f"writes a {sender.__name__} that prompts are built from")
    change = AgentChange(workspace_id, sorted(set(agent_ids)), build_cause(sender, cause, by))
    if isinstance(cause, Revision) and is_review_lifted(cause):
        keep_review(workspace_id, cause.object_id)
    if not before_commit(build_changes, change):
        change.save_causes()
        transaction.on_commit(lambda: build_or_enqueue(workspace_id, change.agent_ids))


def is_review_lifted(revision: Revision) -> bool:
    """Whether a revision of an agent changes the release policy from reviewed to automatic."""
    if revision.kind != Agent.kind or revision.data.get("release_policy") != ReleasePolicy.AUTOMATIC:
        return False
    rows = Revision.objects.in_workspace(revision.workspace_id).filter(
        kind=revision.kind, object_id=revision.object_id, number__lt=revision.number
    )
    before = rows.order_by("-number").values_list("data", flat=True).first() or {}
    return bool(before.get("release_policy") == ReleasePolicy.REVIEWED)


def build_cause(sender: type[Model], cause: Any, by: Actor) -> dict[str, Any]:
    """Return the JSON of a build cause.

    `cause` is the new revision of a record, the refresh run of a source, or None. Then `by` is the author.
    """
    if isinstance(cause, Revision):
        return {
            "kind": cause.kind,
            "id": cause.object_id,
            "revision": cause.number,
            "by": cause.author_label,
            "message": cause.message,
        }
    if cause is not None:
        return {"kind": "refresh", "id": cause.pk, "source": str(cause.source), "by": cause.actor_label}
    return {"kind": getattr(sender, "kind", sender.__name__.lower()), "by": by.label}


def build_changes(changes: list[AgentChange]) -> None:
    """Build the prompts of these agents in the current transaction, if they are few.

    Otherwise, or if the build fails, the changes are saved with their causes, and workers build the prompts.
    """
    causes: dict[int, dict[int, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for change in changes:
        for pk in change.agent_ids:
            causes[change.workspace_id][pk].append(change.cause)
    limit = get_build_limit()
    for workspace_id, new in causes.items():
        is_narrow = len(new) <= limit
        if is_narrow and build_now(workspace_id, list(new), new):
            continue
        for change in changes:
            if change.workspace_id == workspace_id:
                change.save_causes()
        if (recorder := get_change_recorder()) is not None:
            recorder.pending += list_agent_channels(workspace_id, list(new)).count()
        then = enqueue_pending if is_narrow else build_or_enqueue
        transaction.on_commit(partial(then, workspace_id, list(new)))


def get_build_limit() -> int:
    """Return how many prompts are built at once: more for a review, because nothing of it is committed."""
    recorder = get_change_recorder()
    is_review = recorder is not None and not recorder.is_confirmed
    return MAX_REVIEWED_PROMPTS if is_review else int(settings.DRAMATIS_BUILD_AT_ONCE)


def build_or_enqueue(workspace_id: int, agent_ids: list[int]) -> None:
    """Rebuild the agents' prompts now if they are few, so that users see the result of their edit.

    More than DRAMATIS_BUILD_AT_ONCE prompts are left to the workers.
    """
    limit = get_build_limit()
    is_narrow = len(agent_ids) <= limit
    if is_narrow and build_now(workspace_id, agent_ids):
        return
    enqueue_pending(workspace_id, agent_ids, max_prompts=0 if is_narrow else limit)


def enqueue_pending(workspace_id: int, agent_ids: list[int], *, max_prompts: int = 0) -> None:
    """Let workers build the agents with pending causes. Up to `max_prompts` prompts are built now instead."""
    from prompts.tasks import enqueue_rebuilds

    causes = BuildCause.objects.in_workspace(workspace_id).filter(agent__in=agent_ids)
    pending = sorted(set(causes.values_list("agent_id", flat=True)))
    if not pending:
        return
    count = list_agent_channels(workspace_id, pending).count()
    if count <= max_prompts and build_now(workspace_id, pending):
        return
    get_rebuild_counts().pending += count
    enqueue_rebuilds(workspace_id)


def build_now(workspace_id: int, agent_ids: list[int], new_causes: NewCauses | None = None) -> bool:
    """Build the prompts of agents with pending causes; return False if workers must build them.

    A transaction with several changes to an agent runs this once per change. The first run builds the agent
    and deletes all its causes, so the later runs build nothing.
    """
    limit = get_build_limit()
    try:
        # In the edit's transaction, the build runs in a savepoint: a failed build must not undo the edit.
        result = rebuild_pending_agents(workspace_id, agent_ids, max_prompts=limit, new_causes=new_causes)
    except TooManyPrompts:
        return False
    except UnreviewedChange:
        raise
    except Exception:
        log.exception("inline_build_failed", workspace=workspace_id)
        return False
    counts = get_rebuild_counts()
    counts.built += len(result.versions)
    counts.failed += result.failed
    return True
