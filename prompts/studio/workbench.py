"""One agent on the Studio's desk: its channels, what is stored for each, and whether that still holds."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.db.models import Exists, OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from personas.models import Agent, AgentChannel, Channel, Workspace
from prompts.builds.compiler import get_compiler_digest
from prompts.inputs import DraftRecord, LoadedRows
from prompts.inputs.load import AGENT_RELATIONS
from prompts.models import (
    PRODUCTION,
    AgentPrompt,
    BuildCause,
    PromptLabel,
    PromptSettings,
    PromptVersion,
)
from prompts.preview.services import PromptPreview, build_preview
from prompts.studio.prompt_view import (
    PreviewResult,
    build_draft_preview,
    build_stored_preview,
    fill_preview_slots,
)
from prompts.studio.slot_form import SlotForm
from prompts.versions.timeline import HEAVY_COLUMNS


@dataclass
class StudioState:
    """Loaded with one query as a rule: the agent's prompts know the agent and all its channels."""

    workspace: Workspace
    agent: Agent
    prompts: Sequence[AgentPrompt] = ()

    @classmethod
    def of(cls, workspace: Workspace, slug: str) -> "StudioState | None":
        waiting = BuildCause.objects.in_workspace(workspace).filter(agent=OuterRef("agent"))
        rows = AgentPrompt.objects.in_workspace(workspace).filter(agent__slug=slug, is_live=True)
        labels = PromptLabel.objects.in_workspace(workspace).filter(prompt=OuterRef("pk"), name=PRODUCTION)
        rows = rows.annotate(
            is_waiting=Exists(waiting),
            budget=build_studio_budget(workspace),
            in_production=Subquery(labels.values("version")[:1]),
        ).defer(*[f"latest__{name}" for name in HEAVY_COLUMNS])
        parts = [f"agent__{name}" for name in AGENT_RELATIONS]
        prompts = list(
            rows.select_related("agent", *parts, "channel", "latest").order_by("channel__name", "pk")
        )
        if prompts:
            return cls(workspace, prompts[0].agent, prompts)
        agents = Agent.objects.in_workspace(workspace).select_related(*AGENT_RELATIONS)
        agent = agents.filter(slug=slug).first()
        return cls(workspace, agent) if agent else None

    @property
    def is_waiting(self) -> bool:
        """Something was saved that no version has taken in yet."""
        return any(getattr(prompt, "is_waiting", False) for prompt in self.prompts)

    @cached_property
    def channels(self) -> list[Channel]:
        """Where the agent speaks; the prompts know, unless something waits to be built."""
        if self.agent.is_archived:
            return []
        if self.prompts and not self.is_waiting:
            return [prompt.channel for prompt in self.prompts]
        links = AgentChannel.objects.in_workspace(self.workspace).filter(
            agent=self.agent, channel__archived_at=None
        )
        return [link.channel for link in links.select_related("channel").order_by("channel__name", "pk")]

    def channel(self, slug: str) -> Channel | None:
        """The one asked for, else the first."""
        named = [channel for channel in self.channels if channel.slug == slug]
        return next(iter(named or self.channels), None)

    def prompt(self, channel: Channel) -> AgentPrompt | None:
        return next((row for row in self.prompts if row.channel_id == channel.pk), None)

    def unreleased(self, channel: Channel | None) -> PromptVersion | None:
        """The stored version, where it is not the one that bots get."""
        prompt = self.prompt(channel) if channel else None
        if prompt is None or prompt.latest_id == getattr(prompt, "in_production", None):
            return None
        return prompt.latest

    def is_fresh(self, prompt: AgentPrompt | None, layout: str) -> bool:
        """Whether the stored version says what a build would say now."""
        if prompt is None or prompt.latest is None or self.is_waiting or prompt.problem:
            return False
        is_due = prompt.changes_at is not None and prompt.changes_at <= timezone.now()
        version = prompt.latest
        return (
            not is_due
            and version.compiler == get_compiler_digest()
            and version.layout == (layout or self.agent.layout)
        )

    def saved(self, channel: Channel, layout: str, slots: SlotForm) -> PreviewResult:
        """As everything is saved: read where it is stored, assembled where it is not."""
        prompt = self.prompt(channel)
        if prompt is None or prompt.latest is None or not self.is_fresh(prompt, layout):
            return self.drafted(channel, layout, slots, None)
        version = PromptVersion.objects.in_workspace(self.workspace).get(pk=prompt.latest.pk)
        shown = build_stored_preview(prompt, version, getattr(prompt, "budget", None))
        return fill_preview_slots(shown, slots) if slots.is_asked else shown

    def drafted(
        self, channel: Channel, layout: str, slots: SlotForm, draft: DraftRecord | None
    ) -> PreviewResult:
        found = self.preview(channel, layout, draft)
        prompt = self.prompt(channel)
        return build_draft_preview(found, prompt.latest if prompt else None, slots)

    def preview(self, channel: Channel, layout: str, draft: DraftRecord | None) -> PromptPreview:
        """With what lies here already."""
        loaded = LoadedRows.for_agent(self.workspace, self.agent, self.channels)
        return build_preview(
            self.workspace, self.agent, channel.slug, draft=draft, layout=layout, loaded=loaded
        )


def build_studio_budget(workspace: Workspace) -> Coalesce:
    """The nearest level that has one: channel, agent, workspace; asked along with the prompts."""
    rows = PromptSettings.objects.in_workspace(workspace).filter(archived_at=None, token_budget__isnull=False)
    levels: list[dict[str, Any]] = [
        {"channel": OuterRef("channel")},
        {"agent": OuterRef("agent")},
        {"agent": None, "channel": None},
    ]
    return Coalesce(*(Subquery(rows.filter(**level).values("token_budget")[:1]) for level in levels))
