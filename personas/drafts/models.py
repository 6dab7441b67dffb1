"""What a member has typed and not saved yet, kept so that a closed tab loses nothing."""

from django.conf import settings
from django.db import models

from personas.agents.models import Agent
from personas.tenancy.models import WorkspaceOwned


class KeptDraft(WorkspaceOwned):
    """One member's unsaved values of one record, or of a new one; nobody else sees them."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    # The word in the record's addresses and what stands for it there; without a key it is a new one.
    family = models.CharField(max_length=40)
    key = models.CharField(max_length=80, blank=True)
    # Field by field as it was typed, whether or not it could be saved.
    values = models.JSONField(default=dict)
    base_revision = models.PositiveIntegerField(default=0)
    # In whose prompt it was looked at last.
    agent = models.ForeignKey(Agent, null=True, on_delete=models.CASCADE, related_name="+")
    updated_at = models.DateTimeField()

    class Meta(WorkspaceOwned.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "person", "family", "key"], name="one_draft_per_member_and_record"
            )
        ]

    def __str__(self) -> str:
        return f"{self.family}:{self.key}"

    @property
    def part(self) -> str:
        """As the address of the Studio names it."""
        return str(self)

    @property
    def mark(self) -> str:
        """What somebody looked at: whatever is typed later makes it another."""
        return self.updated_at.isoformat()

    @property
    def title(self) -> str:
        """What its writer calls the record; a memory has no name but its words."""
        candidates = [self.values.get(name) for name in ("label", "name", "title", "text")]
        title = next((values[0] for values in candidates if values and values[0].strip()), self.key)
        return " ".join(title.split())[:80]
