"""Progress of rebuilds: numbers of prompts that wait, were rebuilt, or could not be built."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Count, Exists, Min, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone

from personas.models import AgentChannel, Workspace
from prompts.models import AgentPrompt, BuildCause

# If a cause waits for longer than this, the page warns that the workers may be down.
SLOW_AFTER = timedelta(minutes=2)
# Oldest accepted `since` parameter: a page cannot poll for longer than a session lasts.
MAX_SINCE_AGE = timedelta(hours=12)
MAX_UNBUILT_SHOWN = 5


@dataclass(frozen=True)
class BuildProgress:
    """Numbers of prompts that wait for a build, were rebuilt, or failed to build since a timestamp."""

    since: datetime
    waiting: int
    rebuilt: int
    unbuilt: int
    is_slow: bool

    @property
    def total(self) -> int:
        return self.waiting + self.rebuilt + self.unbuilt

    @property
    def fingerprint(self) -> str:
        """A string that changes with the shown numbers; polling returns 204 while it stays the same."""
        return f"{self.waiting}-{self.rebuilt}-{self.unbuilt}-{int(self.is_slow)}"


def list_agent_channels(workspace: Workspace | int, agent_ids: Iterable[int]) -> QuerySet[AgentChannel]:
    """List the active channels of these agents; each pair of agent and channel has one prompt."""
    return list_active_channels(workspace).filter(agent__in=list(agent_ids))


def list_active_channels(workspace: Workspace | int) -> QuerySet[AgentChannel]:
    rows = AgentChannel.objects.in_workspace(workspace)
    return rows.filter(agent__archived_at=None, channel__archived_at=None)


def get_build_progress(workspace: Workspace | int, since: datetime | None = None) -> BuildProgress | None:
    """Return the progress since the oldest pending cause, or since `since` if that is earlier.

    Return None if no build is pending, and either `since` is None or nothing was built after it.
    """
    oldest = BuildCause.objects.in_workspace(workspace).aggregate(at=Min("at"))["at"]
    starts = [start for start in (since, oldest) if start is not None]
    if not starts:
        return None
    started_at = min(starts)
    is_slow = oldest is not None and timezone.now() - oldest > SLOW_AFTER
    progress = BuildProgress(started_at, **count_builds_since(workspace, started_at), is_slow=is_slow)
    return progress if progress.waiting or (since is not None and progress.total) else None


def count_builds_since(workspace: Workspace | int, since: datetime) -> dict[str, int]:
    """Count waiting, rebuilt and failed prompts.

    A single query counts them, so that a build that finishes meanwhile does not count a prompt twice.
    """
    causes = BuildCause.objects.in_workspace(workspace).filter(agent=OuterRef("agent_id"))
    prompts = AgentPrompt.objects.in_workspace(workspace).filter(
        agent=OuterRef("agent_id"), channel=OuterRef("channel_id")
    )
    rows = list_active_channels(workspace).annotate(
        is_waiting=Exists(causes),
        built_at=Subquery(prompts.values("built_at")[:1]),
        problem=Subquery(prompts.values("problem")[:1]),
    )
    done = Q(is_waiting=False, built_at__gte=since)
    counts: dict[str, int] = rows.aggregate(
        waiting=Count("pk", filter=Q(is_waiting=True)),
        rebuilt=Count("pk", filter=done & Q(problem="")),
        unbuilt=Count("pk", filter=done & ~Q(problem="")),
    )
    return counts


def list_unbuilt_prompts(workspace: Workspace | int, since: datetime | None = None) -> QuerySet[AgentPrompt]:
    """List live prompts whose last build failed, optionally only those built since a timestamp."""
    rows = AgentPrompt.objects.in_workspace(workspace).filter(is_active=True).exclude(problem="")
    rows = rows.select_related("agent", "channel").order_by("agent__name", "channel__name", "pk")
    return rows.filter(built_at__gte=since) if since else rows


def get_progress_context(
    workspace: Workspace, progress: BuildProgress | None, *, everything: bool
) -> dict[str, Any]:
    """Return the template context of the progress component.

    With `everything`, list all failed prompts, including those that failed before `progress` started.
    """
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


def parse_since(value: str) -> datetime | None:
    """Parse the `since` query parameter; None if it is invalid, in the future or too old."""
    try:
        since = datetime.fromisoformat(value)
    except ValueError:
        return None
    since = since if since.tzinfo else since.replace(tzinfo=UTC)
    now = timezone.now()
    return since if now - MAX_SINCE_AGE <= since <= now else None
