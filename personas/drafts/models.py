"""Model of drafts: form values that are not saved yet, stored so that closing a tab loses nothing."""

from django.conf import settings
from django.db import models

from personas.agents.models import Agent
from personas.tenancy.fields import TenantForeignKey
from personas.tenancy.models import WorkspaceOwned


class FormDraft(WorkspaceOwned):
    """Unsaved form values of a member for an existing or a new record. Other members cannot see them."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    # The kind of record as in URLs, such as `souls`, and the record's slug or id. The key is empty for a new
    # record.
    family = models.CharField(max_length=40)
    key = models.CharField(max_length=80, blank=True)
    # The form values by field name. They are not validated.
    values = models.JSONField(default=dict)
    base_revision = models.PositiveIntegerField(default=0)
    # The agent whose prompt was last previewed with this draft.
    agent = TenantForeignKey(Agent, null=True, on_delete=models.CASCADE, related_name="+")
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
        """The value that selects this draft in the query parameter `part` of the Studio page."""
        return str(self)

    @property
    def mark(self) -> str:
        """Identifier of the draft's current state. It changes with every edit."""
        return self.updated_at.isoformat()

    @property
    def title(self) -> str:
        """Title for lists: the first nonempty value of the fields label, name, title and text, shortened."""
        candidates = [self.values.get(name) for name in ("name", "title", "text")]
        title = next((values[0] for values in candidates if values and values[0].strip()), self.key)
        return " ".join(title.split())[:80]
