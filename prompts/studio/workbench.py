"""The agent that is open in the Studio: its channels, its stored prompts, and whether those are current."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from django.db.models import Exists, OuterRef, QuerySet, Subquery
from django.utils import timezone

from personas.models import Agent, AgentChannel, Channel, Workspace
from prompts.models import (
    PRODUCTION,
    AgentPrompt,
    BuildCause,
    PromptLabel,
    PromptVersion,
)
from prompts.publishing.builds.compiler import get_compiler_digest
from prompts.publishing.inputs import DraftRecord, LoadedRows
from prompts.publishing.inputs.load import list_full_agents
from prompts.publishing.preview.services import PromptPreview, build_preview
from prompts.publishing.settings.selectors import build_effective_budget
from prompts.publishing.versions.timeline import HEAVY_COLUMNS
from prompts.studio.prompt_view import (
    PreviewResult,
    build_draft_preview,
    build_stored_preview,
    fill_preview_slots,
)
from prompts.studio.slot_form import SlotForm


def list_studio_prompts(workspace: Workspace, agent: Agent) -> QuerySet[AgentPrompt]:
    """List the live prompts of an agent with their channels.

    This is not one query with that for the agent and its records: with all of these joins, the database
    takes four times as long to plan it.
    """
    causes = BuildCause.objects.in_workspace(workspace).filter(agent=OuterRef("agent"))
    rows = AgentPrompt.objects.in_workspace(workspace).filter(agent=agent, is_active=True)
    labels = PromptLabel.objects.in_workspace(workspace).filter(prompt=OuterRef("pk"), name=PRODUCTION)
    rows = rows.annotate(
        is_waiting=Exists(causes),
        budget=build_effective_budget(workspace),
        in_production=Subquery(labels.values("version")[:1]),
    ).defer(*[f"latest__{name}" for name in HEAVY_COLUMNS])
    return rows.select_related("channel", "latest").order_by("channel__name", "pk")


@dataclass
class StudioState:
    """An agent with its live prompts."""

    workspace: Workspace
    agent: Agent
    prompts: Sequence[AgentPrompt] = ()

    @classmethod
    def load(cls, workspace: Workspace, slug: str) -> "StudioState | None":
        agent = list_full_agents(workspace).filter(slug=slug).first()
        if agent is None:
            return None
        prompts = list(list_studio_prompts(workspace, agent))
        for prompt in prompts:
            prompt.agent = agent
        return cls(workspace, agent, prompts)

    @property
    def is_waiting(self) -> bool:
        """Whether a saved change has not been built into a version yet."""
        return any(getattr(prompt, "is_waiting", False) for prompt in self.prompts)

    @cached_property
    def channels(self) -> list[Channel]:
        """The channels of the agent, taken from its prompts unless a build is pending."""
        if self.agent.is_archived:
            return []
        if self.prompts and not self.is_waiting:
            return [prompt.channel for prompt in self.prompts]
        links = AgentChannel.objects.in_workspace(self.workspace).filter(
            agent=self.agent, channel__archived_at=None
        )
        return [link.channel for link in links.select_related("channel").order_by("channel__name", "pk")]

    def get_channel(self, slug: str) -> Channel | None:
        """Return the channel with this slug, else the agent's first channel; None if it has no channel."""
        matches = [channel for channel in self.channels if channel.slug == slug]
        return next(iter(matches or self.channels), None)

    def get_prompt(self, channel: Channel) -> AgentPrompt | None:
        return next((row for row in self.prompts if row.channel_id == channel.pk), None)

    def get_unreleased_version(self, channel: Channel | None) -> PromptVersion | None:
        """Return the latest version of a channel if it is not the one in production."""
        prompt = self.get_prompt(channel) if channel else None
        if prompt is None or prompt.latest_id == getattr(prompt, "in_production", None):
            return None
        return prompt.latest

    def is_current(self, prompt: AgentPrompt | None, layout: str) -> bool:
        """Whether the latest version is up to date: a build with this layout would produce the same text."""
        if prompt is None or prompt.latest is None or self.is_waiting or prompt.problem:
            return False
        is_due = prompt.changes_at is not None and prompt.changes_at <= timezone.now()
        version = prompt.latest
        return (
            not is_due
            and version.compiler == get_compiler_digest()
            and version.layout == (layout or self.agent.layout)
        )

    def preview_saved(self, channel: Channel, layout: str, slots: SlotForm) -> PreviewResult:
        """Preview the prompt without a draft: from the stored version if it is current, else assembled."""
        prompt = self.get_prompt(channel)
        if prompt is None or prompt.latest is None or not self.is_current(prompt, layout):
            return self.preview_draft(channel, layout, slots, None)
        version = PromptVersion.objects.in_workspace(self.workspace).get(pk=prompt.latest.pk)
        preview = build_stored_preview(prompt, version, getattr(prompt, "budget", None))
        return fill_preview_slots(preview, slots) if slots.has_input else preview

    def preview_draft(
        self, channel: Channel, layout: str, slots: SlotForm, draft: DraftRecord | None
    ) -> PreviewResult:
        preview = self.load_preview(channel, layout, draft)
        prompt = self.get_prompt(channel)
        return build_draft_preview(preview, prompt.latest if prompt else None, slots)

    def load_preview(self, channel: Channel, layout: str, draft: DraftRecord | None) -> PromptPreview:
        """Collect the inputs of a preview, reusing the agent and channels that are already loaded."""
        loaded = LoadedRows.for_agent(self.workspace, self.agent, self.channels)
        return build_preview(
            self.workspace, self.agent, channel.slug, draft=draft, layout=layout, loaded=loaded
        )
