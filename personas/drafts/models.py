"""Model of drafts: unsaved form values of members, stored so that closing a tab loses nothing."""

from django.conf import settings
from django.db import models

from personas.agents.models import Agent
from personas.tenancy.models import WorkspaceOwned


class KeptDraft(WorkspaceOwned):
    """Unsaved values of one member for one record or a new one; private to that member."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    # The kind of record as in URLs (`souls`) and the record's URL key; an empty key means a new record.
    family = models.CharField(max_length=40)
    key = models.CharField(max_length=80, blank=True)
    # Submitted form values by field name, not validated.
    values = models.JSONField(default=dict)
    base_revision = models.PositiveIntegerField(default=0)
    # The agent whose prompt was previewed last.
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
        """The value of the Studio's `part` query parameter."""
        return str(self)

    @property
    def mark(self) -> str:
        """Identifier of this state of the draft; it changes with every edit."""
        return self.updated_at.isoformat()

    @property
    def title(self) -> str:
        """The first nonempty label, name, title or text of the draft, shortened."""
        candidates = [self.values.get(name) for name in ("label", "name", "title", "text")]
        title = next((values[0] for values in candidates if values and values[0].strip()), self.key)
        return " ".join(title.split())[:80]
