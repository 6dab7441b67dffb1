"""Model of comments on memories and on lines of versions."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from core.db.fields import ProseField
from personas.models import Memory, WorkspaceOwned
from personas.tenancy.fields import TenantForeignKey
from prompts.publishing.versions.models import PromptVersion


class Comment(WorkspaceOwned):
    """A comment on a memory, or on a line of a version. Its author can delete it, not edit it.

    The text of the line is not copied: it is read from the version, where it can be erased.
    """

    memory = TenantForeignKey(Memory, null=True, on_delete=models.PROTECT, related_name="+")
    version = TenantForeignKey(PromptVersion, null=True, on_delete=models.PROTECT, related_name="+")
    # The number of the line in the text of the version, from 1.
    line = models.PositiveIntegerField(null=True)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    author_label = models.CharField(max_length=254)
    text = ProseField(max_length=4_000)
    at = models.DateTimeField(auto_now_add=True)

    class Meta(WorkspaceOwned.Meta):
        constraints = [
            models.CheckConstraint(
                condition=Q(memory__isnull=False, version=None, line=None)
                | Q(memory=None, version__isnull=False, line__gte=1),
                name="comment_has_one_subject",
            )
        ]

    def __str__(self) -> str:
        return f"Comment {self.pk}"
