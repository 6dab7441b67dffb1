"""The questions asked about releases and labels; every one names its workspace."""

from django.db.models import Count, F, OuterRef, Q, QuerySet, Subquery

from personas.models import ReleasePolicy, Workspace
from prompts.models import (
    LATEST,
    PRODUCTION,
    AgentPrompt,
    LabelRule,
    PromptLabel,
    PromptVersion,
    Release,
    ReleaseItem,
    ReleaseStatus,
)

OPEN = (ReleaseStatus.REQUESTED, ReleaseStatus.APPROVED)


def releases_of(workspace: Workspace | int) -> QuerySet[Release]:
    """Newest first, with how many prompts each moves."""
    rows = Release.objects.in_workspace(workspace).annotate(prompt_count=Count("items"))
    return rows.order_by("-number")


def releasable(workspace: Workspace | int) -> QuerySet[AgentPrompt]:
    """Live prompts whose latest version is not what bots get, with the version that is."""
    labels = PromptLabel.objects.in_workspace(workspace).filter(prompt=OuterRef("pk"), name=PRODUCTION)
    versions = PromptVersion.objects.in_workspace(workspace).filter(labels__in=[])
    rows = AgentPrompt.objects.in_workspace(workspace).filter(is_live=True, latest__isnull=False)
    del versions
    rows = rows.annotate(
        in_production=Subquery(labels.values("version")[:1]),
        production_number=Subquery(labels.values("version__number")[:1]),
        production_tokens=Subquery(labels.values("version__tokens")[:1]),
    )
    rows = rows.filter(Q(in_production=None) | ~Q(in_production=F("latest")))
    heavy = [f"latest__{name}" for name in ("segments", "lockfile", "sizes", "causes")]
    rows = rows.select_related("agent", "channel", "latest").defer(*heavy)
    return rows.order_by("agent__name", "agent_id", "channel__name", "pk")
