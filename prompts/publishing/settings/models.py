"""The model for prompt settings, inherited from workspace to agent to channel to prompt."""

from collections.abc import Iterator
from functools import partial

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.db.fields import ProseField
from core.db.line_lists import LineListField
from personas.models import Agent, Channel, Identity, Record, Soul, UserProfile
from personas.tenancy.fields import TenantForeignKey
from prompts.publishing.settings.validation import (
    validate_sample_data,
    validate_section_limits,
    validate_signature,
)

ENTRY_CHOICES = [("full", _("Full")), ("simple", _("Simple")), ("minimal", _("Minimal"))]
MODE_CHOICES = [("agent", _("Agent")), ("single_turn", _("Single turn"))]
MIN_TOTAL_CHARACTERS = 500
MAX_NUMBER = 2**31 - 1
# Settings that are numbers of at least 1.
LIMIT_FIELDS = ("list_sample", "string_truncate", "per_file", "all_files")


class PromptSettings(Record):
    """Settings of one level: a prompt (agent and channel), an agent, a channel, or the workspace.

    Values that are empty here are inherited: a prompt from its channel, a channel from the agent, an agent
    from the workspace.
    """

    kind = "prompt_settings"
    content = (
        *("identity", "soul", "user_profile", "mission", "signature", "sample_data", "hidden"),
        *("entry", "mode", "native_tools", "total_characters", "token_budget"),
        *("list_sample", "string_truncate", "omit_reference", "per_file", "all_files", "section_limits"),
    )

    agent = TenantForeignKey(
        Agent, null=True, blank=True, on_delete=models.PROTECT, related_name="prompt_settings"
    )
    channel = TenantForeignKey(
        Channel, null=True, blank=True, on_delete=models.PROTECT, related_name="prompt_settings"
    )
    identity = TenantForeignKey(Identity, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    soul = TenantForeignKey(Soul, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    user_profile = TenantForeignKey(
        UserProfile, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    mission = ProseField(max_length=20_000, blank=True)
    signature = ProseField(max_length=4_000, blank=True, default="", db_default="")
    # A JSON object. Stored as text, because jsonb reorders keys and the data inventory keeps their order.
    sample_data = ProseField(max_length=60_000, blank=True, default="", db_default="")
    hidden = LineListField(null=True, blank=True, item_length=200)
    entry = models.CharField(max_length=7, choices=ENTRY_CHOICES, blank=True)
    mode = models.CharField(max_length=11, choices=MODE_CHOICES, blank=True)
    native_tools = models.BooleanField(null=True, blank=True)
    total_characters = models.PositiveIntegerField(null=True, blank=True)
    # Only displayed next to the token count of a version; prompts are not cut to it.
    token_budget = models.PositiveIntegerField(null=True, blank=True)
    list_sample = models.PositiveIntegerField(null=True, blank=True)
    string_truncate = models.PositiveIntegerField(null=True, blank=True)
    omit_reference = models.BooleanField(null=True, blank=True)
    per_file = models.PositiveIntegerField(null=True, blank=True)
    all_files = models.PositiveIntegerField(null=True, blank=True)
    # The maximum number of characters by section name.
    section_limits = models.JSONField(null=True, blank=True)

    class Meta(Record.Meta):
        verbose_name_plural = _("prompt settings")
        constraints = [
            models.UniqueConstraint(
                fields=["workspace"], condition=Q(agent=None, channel=None), name="one_set_of_defaults"
            ),
            models.UniqueConstraint(
                fields=["agent"], condition=Q(channel=None), name="settings_once_per_agent"
            ),
            models.UniqueConstraint(
                fields=["channel"], condition=Q(agent=None), name="settings_once_per_channel"
            ),
            models.UniqueConstraint(
                fields=["agent", "channel"],
                condition=Q(agent__isnull=False, channel__isnull=False),
                name="settings_once_per_prompt",
            ),
        ]

    def __str__(self) -> str:
        if self.agent and self.channel:
            return f"{self.agent} · {self.channel}"
        return str(self.agent or self.channel or gettext("Workspace defaults"))

    @property
    def level(self) -> str:
        if self.agent_id is not None:
            return "agent" if self.channel_id is None else "prompt"
        return "workspace" if self.channel_id is None else "channel"

    @property
    def level_key(self) -> str:
        """The level as a URL key; it exists before the level has a row. `get_or_build_level` parses it."""
        ids = [str(pk) for pk in (self.agent_id, self.channel_id) if pk is not None]
        return "-".join([self.level, *ids])

    @property
    def has_values(self) -> bool:
        """Whether any setting has a value on this level."""
        return any(value not in (None, "") for value in self.snapshot().values())

    def clean(self) -> None:
        super().clean()
        # An empty list or object sets nothing: the value is inherited.
        self.hidden, self.section_limits = self.hidden or None, self.section_limits or None
        errors: dict[str, list[ValidationError]] = {}
        for validate in (
            partial(validate_signature, self.signature),
            partial(validate_sample_data, self.sample_data),
            partial(validate_section_limits, self.section_limits, self.agent.layout if self.agent else ""),
        ):
            try:
                validate()
            except ValidationError as error:
                error.update_error_dict(errors)
        for name, message in self.list_limit_errors():
            errors[name] = [ValidationError(message)]
        if self.level == "agent" and (self.identity_id or self.soul_id or self.user_profile_id):
            message = gettext(
                "Set an agent's identity, soul and user profile on the agent, not in its prompt settings."
            )
            errors[NON_FIELD_ERRORS] = [ValidationError(message)]
        if errors:
            raise ValidationError(errors)

    def list_limit_errors(self) -> Iterator[tuple[str, str]]:
        if self.total_characters is not None and self.total_characters < MIN_TOTAL_CHARACTERS:
            yield "total_characters", gettext("The limit must be at least 500 characters.")
        for name in LIMIT_FIELDS:
            if getattr(self, name) == 0:
                yield name, gettext("Must be at least 1.")

    def agent_ids(self) -> list[int]:
        agents = Agent.objects.in_workspace(self.workspace_id).filter(archived_at=None)
        if self.agent_id is not None:
            # Prompts of agents that have this agent as a tool can show its mission and result type.
            agents = agents.filter(Q(pk=self.agent_id) | Q(tool_links__tool__agent=self.agent_id)).distinct()
        if self.channel_id is not None:
            agents = agents.filter(channel_links__channel=self.channel_id)
        return list(agents.order_by("pk").values_list("pk", flat=True))
