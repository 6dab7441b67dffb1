"""Events of a workspace, and the number of its last one."""

from django.conf import settings
from django.db import models
from django.utils import timezone

from personas.tenancy.models import WorkspaceOwned
from personas.workspaces.models import Workspace


class Event(WorkspaceOwned):
    """Something that happened in a workspace. It is inserted in the transaction of its cause.

    `data` has ids, numbers, digests and slugs, never text: see personas.events.types. `sequence` is null
    until `number_events` has numbered the committed event. So no transaction waits for another one because of
    the number, and no rolled back transaction leaves a gap.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+", db_index=False)
    sequence = models.PositiveBigIntegerField(null=True)
    type = models.CharField(max_length=40)
    data = models.JSONField()
    at = models.DateTimeField(default=timezone.now)
    # The user who caused the event, if notifications need it: they name this user, who gets none. Not exposed
    # by the API or webhooks.
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )

    class Meta(WorkspaceOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["workspace", "sequence"], name="event_sequence_once")]
        indexes = [
            models.Index(
                fields=["workspace", "id"], name="events_to_number", condition=models.Q(sequence=None)
            ),
            models.Index(fields=["workspace", "at"], name="events_by_time"),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.sequence or ''}".strip()

    @property
    def public_id(self) -> str:
        """The id in the API and in webhooks. It is the same in every delivery of the event."""
        return f"evt_{self.pk}"


class EventCounter(WorkspaceOwned):
    """The number of the last event of a workspace. It is kept when old events are deleted.

    It has a table of its own, because many transactions lock the row of the workspace.
    """

    workspace = models.OneToOneField(Workspace, on_delete=models.PROTECT, related_name="+")
    last = models.PositiveBigIntegerField(default=0)

    class Meta(WorkspaceOwned.Meta):
        pass

    def __str__(self) -> str:
        return f"{self.workspace_id}: {self.last}"
