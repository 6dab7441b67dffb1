"""Model of memories: facts that reach the prompts of agents."""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.db.fields import LineField, ProseField
from core.text.shorten import shorten_text
from personas.agents.models import Agent
from personas.records.models import Record
from personas.tenancy.fields import TenantForeignKey

VALIDITY_FIELDS = ("valid_from", "valid_until")
# Python supports the years 1 to 9999, but converting a timestamp in the first or last of them to another
# timezone can overflow.
ALLOWED_YEARS = range(1000, 9999)

# A memory has no name of its own. The beginning of its text is used instead, up to this length.
MAX_NAME_LENGTH = 80


class MemoryStatus(models.TextChoices):
    """Review status of a memory; only active memories reach a prompt."""

    PROPOSED = "proposed", _("Proposed")
    ACTIVE = "active", _("Active")
    SUPERSEDED = "superseded", _("Superseded")
    REVOKED = "revoked", _("Revoked")


class Memory(Record):
    """A fact that belongs to one agent or, if `agent` is None, to all agents of the workspace."""

    kind = "memory"
    content = ("text", "agent", "status", "source", "valid_from", "valid_until", "superseded_by")

    text = ProseField(max_length=2_000)
    agent = TenantForeignKey(Agent, null=True, blank=True, on_delete=models.PROTECT, related_name="memories")
    status = models.CharField(max_length=10, choices=MemoryStatus.choices, default=MemoryStatus.ACTIVE)
    source = LineField(max_length=300, blank=True)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    author_label = LineField(max_length=254, editable=False)
    valid_from = models.DateTimeField(null=True, blank=True)
    valid_until = models.DateTimeField(null=True, blank=True)
    superseded_by = TenantForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="supersedes"
    )

    class Meta(Record.Meta):
        verbose_name_plural = "memories"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(status__in=MemoryStatus.values), name="memory_status_known"
            ),
            models.CheckConstraint(
                condition=models.Q(superseded_by=None) | models.Q(status=MemoryStatus.SUPERSEDED),
                name="only_superseded_memories_have_a_successor",
            ),
            models.CheckConstraint(
                condition=models.Q(valid_from=None)
                | models.Q(valid_until=None)
                | models.Q(valid_until__gt=models.F("valid_from")),
                name="memory_valid_from_before_until",
                violation_error_message=_("“Valid until” must come after “valid from”."),
            ),
        ]

    def __str__(self) -> str:
        return shorten_text(self.text, MAX_NAME_LENGTH)

    def set_values(self, values: dict[str, Any]) -> None:
        """Set the content fields, then derive `archived_at` from the status: only revoked memories have it.

        This is needed because restoring an old revision can change the status.
        """
        super().set_values(values)
        if self.status != MemoryStatus.REVOKED:
            self.archived_at = None
        elif self.archived_at is None:
            self.archived_at = timezone.now()

    def clean(self) -> None:
        super().clean()
        if self.superseded_by_id is not None and self.superseded_by_id == self.pk:
            raise ValidationError({"superseded_by": gettext("A memory cannot replace itself.")})
        out_of_range = [name for name in VALIDITY_FIELDS if is_year_out_of_range(getattr(self, name))]
        if out_of_range:
            message = gettext("Enter a year from %(first)d to %(last)d, or leave this empty.")
            years = {"first": ALLOWED_YEARS.start, "last": ALLOWED_YEARS.stop - 1}
            raise ValidationError(dict.fromkeys(out_of_range, message % years))

    def can_change_prompts(self, before: dict[str, Any] | None, after: dict[str, Any]) -> bool:
        """Only active memories are in prompts: proposing or rejecting one changes none."""
        return MemoryStatus.ACTIVE in ((before or {}).get("status"), after["status"])

    def agent_ids(self) -> list[int]:
        return super().agent_ids() if self.agent_id is None else [self.agent_id]

    def query_agent_ids(self) -> "models.QuerySet[Any, int] | None":
        if self.agent_id is not None:
            return None
        agents = Agent.objects.in_workspace(self.workspace_id).filter(archived_at=None)
        return agents.values_list("pk", flat=True)


def is_year_out_of_range(value: object) -> bool:
    return isinstance(value, datetime) and value.year not in ALLOWED_YEARS
