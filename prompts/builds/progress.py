"""How far a wide change has come: prompts that still wait, that were rebuilt, and that could not be."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Count, Exists, Min, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone

from personas.models import AgentChannel, Workspace
from prompts.models import AgentPrompt, BuildCause

# Beyond this somebody should look after the workers.
SLOW_AFTER = timedelta(minutes=2)
# No page stays open for longer than a log-in lasts.
MAX_SINCE_AGE = timedelta(hours=12)
MAX_UNBUILT_SHOWN = 5


@dataclass(frozen=True)
class BuildProgress:
    """Of the prompts that were to be built since a moment."""

    since: datetime
    waiting: int
    rebuilt: int
    unbuilt: int
    is_slow: bool

    @property
    def total(self) -> int:
        return self.waiting + self.rebuilt + self.unbuilt

    @property
    def mark(self) -> str:
        """What a page has seen of it; another mark is news."""
        return f"{self.waiting}-{self.rebuilt}-{self.unbuilt}-{int(self.is_slow)}"


def list_agent_channels(workspace: Workspace | int, agent_ids: Iterable[int]) -> QuerySet[AgentChannel]:
    """The channels on which these agents speak: a prompt each."""
    return list_active_channels(workspace).filter(agent__in=list(agent_ids))


def list_active_channels(workspace: Workspace | int) -> QuerySet[AgentChannel]:
    rows = AgentChannel.objects.in_workspace(workspace)
    return rows.filter(agent__archived_at=None, channel__archived_at=None)


def get_build_progress(workspace: Workspace | int, since: datetime | None = None) -> BuildProgress | None:
    """Since a moment, or since the change that waits longest; None where nothing waits or was waited for."""
    oldest = BuildCause.objects.in_workspace(workspace).aggregate(at=Min("at"))["at"]
    moments = [moment for moment in (since, oldest) if moment is not None]
    if not moments:
        return None
    begun = min(moments)
    is_slow = oldest is not None and timezone.now() - oldest > SLOW_AFTER
    progress = BuildProgress(begun, **count_builds_since(workspace, begun), is_slow=is_slow)
    return progress if progress.waiting or (since is not None and progress.total) else None


def count_builds_since(workspace: Workspace | int, begun: datetime) -> dict[str, int]:
    """In one statement, so that no prompt is counted as waiting and as rebuilt at once."""
    causes = BuildCause.objects.in_workspace(workspace).filter(agent=OuterRef("agent_id"))
    prompts = AgentPrompt.objects.in_workspace(workspace).filter(
        agent=OuterRef("agent_id"), channel=OuterRef("channel_id")
    )
    rows = list_active_channels(workspace).annotate(
        is_waiting=Exists(causes),
        built_at=Subquery(prompts.values("built_at")[:1]),
        problem=Subquery(prompts.values("problem")[:1]),
    )
    done = Q(is_waiting=False, built_at__gte=begun)
    counts: dict[str, int] = rows.aggregate(
        waiting=Count("pk", filter=Q(is_waiting=True)),
        rebuilt=Count("pk", filter=done & Q(problem="")),
        unbuilt=Count("pk", filter=done & ~Q(problem="")),
    )
    return counts


def list_unbuilt_prompts(workspace: Workspace | int, since: datetime | None = None) -> QuerySet[AgentPrompt]:
    """Prompts whose last build left everything as it was; of all times, or built since a moment."""
    rows = AgentPrompt.objects.in_workspace(workspace).filter(is_live=True).exclude(problem="")
    rows = rows.select_related("agent", "channel").order_by("agent__name", "channel__name", "pk")
    return rows.filter(built_at__gte=since) if since else rows


def get_progress_context(
    workspace: Workspace, progress: BuildProgress | None, *, everything: bool
) -> dict[str, Any]:
    """All that the component says; with everything, also what could not be built long ago."""
    unbuilt: list[AgentPrompt] = []
    if everything or (progress and progress.unbuilt):
        rows = list_unbuilt_prompts(workspace, None if everything or not progress else progress.since)
        unbuilt = list(rows[: MAX_UNBUILT_SHOWN + 1])
    return {
        "workspace": workspace,
        "progress": progress,
        "unbuilt": unbuilt[:MAX_UNBUILT_SHOWN],
        "has_more": len(unbuilt) > MAX_UNBUILT_SHOWN,
        "everything": everything,
    }


def parse_since(said: str) -> datetime | None:
    """A moment from an address; what is none, or too long ago, is as good as nothing."""
    try:
        moment = datetime.fromisoformat(said)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    now = timezone.now()
    return moment if now - MAX_SINCE_AGE <= moment <= now else None
