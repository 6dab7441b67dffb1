"""The model for prompt settings, inherited from workspace to agent to channel."""

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.db.fields import ProseField
from personas.models import Agent, Channel, Identity, Record, Soul, UserProfile

ENTRY_CHOICES = [("full", _("Full")), ("simple", _("Simple")), ("minimal", _("Minimal"))]
MODE_CHOICES = [("agent", _("Agent")), ("single_turn", _("Single turn"))]


class PromptSettings(Record):
    """Settings of one level: an agent, a channel, or the workspace if neither is set.

    A channel inherits values that are empty here from the agent, and an agent from the workspace.
    """

    kind = "prompt_settings"
    content = (
        *("identity", "soul", "user_profile", "mission", "entry", "mode", "native_tools"),
        *("total_characters", "token_budget"),
    )

    agent = models.OneToOneField(
        Agent, null=True, blank=True, on_delete=models.PROTECT, related_name="prompt_settings"
    )
    channel = models.OneToOneField(
        Channel, null=True, blank=True, on_delete=models.PROTECT, related_name="prompt_settings"
    )
    identity = models.ForeignKey(Identity, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    soul = models.ForeignKey(Soul, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    user_profile = models.ForeignKey(
        UserProfile, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    mission = ProseField(max_length=20_000, blank=True)
    entry = models.CharField(max_length=7, choices=ENTRY_CHOICES, blank=True)
    mode = models.CharField(max_length=11, choices=MODE_CHOICES, blank=True)
    native_tools = models.BooleanField(null=True, blank=True)
    total_characters = models.PositiveIntegerField(null=True, blank=True)
    # Only displayed next to the token count of a version; prompts are not cut to it.
    token_budget = models.PositiveIntegerField(null=True, blank=True)

    class Meta(Record.Meta):
        verbose_name_plural = _("prompt settings")
        constraints = [
            models.UniqueConstraint(
                fields=["workspace"], condition=Q(agent=None, channel=None), name="one_set_of_defaults"
            ),
            models.CheckConstraint(condition=Q(agent=None) | Q(channel=None), name="settings_of_one_level"),
        ]

    def __str__(self) -> str:
        return str(self.agent or self.channel or "Workspace defaults")

    def clean(self) -> None:
        super().clean()
        if self.total_characters is not None and self.total_characters < 500:
            raise ValidationError(
                {"total_characters": gettext("Fewer than 500 characters leave no room for a prompt.")}
            )
        if self.agent_id is not None and (self.identity_id or self.soul_id or self.user_profile_id):
            raise ValidationError(
                gettext("An agent's identity, soul and profile are chosen on the agent itself.")
            )

    def agent_ids(self) -> list[int]:
        agents = Agent.objects.in_workspace(self.workspace_id).filter(archived_at=None)
        if self.agent_id is not None:
            # The mission can be in the prompts of agents that have this agent as a tool.
            agents = agents.filter(Q(pk=self.agent_id) | Q(tool_links__tool__agent=self.agent_id)).distinct()
        if self.channel_id is not None:
            agents = agents.filter(channel_links__channel=self.channel_id)
        return list(agents.order_by("pk").values_list("pk", flat=True))
