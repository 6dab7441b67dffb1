"""Hears the one bell: notes why, and after the commit builds what is little and hands on the rest."""

from collections.abc import Iterable
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Model
from django.dispatch import receiver

from personas.actors import SYSTEM_ACTOR
from personas.models import Revision
from personas.signals import agent_changed
from prompts.builds.causes import add_build_causes
from prompts.builds.middleware import get_rebuild_counts
from prompts.builds.progress import list_agent_channels
from prompts.builds.services import rebuild_agents
from prompts.models import BuildCause

log = structlog.get_logger(__name__)


@receiver(agent_changed)
def record_change(
    sender: type[Model], *, workspace_id: int, agent_ids: Iterable[int], cause: Any = None, **_: Any
) -> None:
    """In the same transaction as the change: where the change is, the cause is."""
    ids = sorted(set(agent_ids))
    add_build_causes(workspace_id, ids, build_cause(sender, cause))
    transaction.on_commit(lambda: build_or_enqueue(workspace_id, ids))


def build_cause(sender: type[Model], cause: Any) -> dict[str, Any]:
    """Which revision of which record, by whom; a look at a source tells what it was asked for."""
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
    return {"kind": getattr(sender, "kind", sender.__name__.lower()), "by": SYSTEM_ACTOR.label}


def build_or_enqueue(workspace_id: int, agent_ids: list[int]) -> None:
    """Few prompts are built before the request answers, so that whoever wrote reads what he wrote."""
    from prompts.tasks import enqueue_rebuilds

    # Of many changes in one transaction the first hook builds an agent with all its causes; others find none.
    waiting = BuildCause.objects.in_workspace(workspace_id).filter(agent__in=agent_ids)
    agent_ids = sorted(set(waiting.values_list("agent_id", flat=True)))
    if not agent_ids:
        return
    count = list_agent_channels(workspace_id, agent_ids).count()
    if count <= settings.DRAMATIS_BUILD_AT_ONCE and build_now(workspace_id, agent_ids):
        return
    get_rebuild_counts().pending += count
    enqueue_rebuilds(workspace_id, agent_ids)


def build_now(workspace_id: int, agent_ids: list[int]) -> bool:
    """Whether it could be done here; the edit is saved in any case, and the sweep finds what is left."""
    try:
        built = rebuild_agents(workspace_id, agent_ids)
    except Exception:
        # Whatever it was: the edit is made, and whoever made it must not be told that it failed.
        log.exception("inline_build_failed", workspace=workspace_id)
        return False
    echo = get_rebuild_counts()
    echo.built += len(built.versions)
    echo.failed += built.failed
    return True
