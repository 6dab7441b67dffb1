"""Model of the data that calls send: values by digest."""

from django.db import models

from personas.models import ErasableContent, Workspace, WorkspaceOwned


class CallContent(ErasableContent):
    """A value of a call, or all its short values, as canonical JSON.

    Any number of ledger rows may refer to it by its salted digest.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+", db_index=False)
    # The last day (UTC) on which a call sent the value. Ledger rows dated later, by more than MARGIN in
    # retention.py, do not refer to it.
    last_used_on = models.DateField()

    class Meta(WorkspaceOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["workspace", "digest"], name="call_content_once"),
            models.UniqueConstraint(
                fields=["workspace", "plain_digest"],
                condition=models.Q(plain_digest__isnull=False),
                name="salted_call_content_once",
            ),
        ]
        indexes = [models.Index(fields=["workspace", "last_used_on"], name="call_contents_by_use")]
