"""Models of releases. A release moves a label on many prompts at once; reviewed agents need an approval."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from core.db.fields import LineField, ProseField
from personas.models import WorkspaceOwned
from personas.tenancy.fields import TenantForeignKey
from prompts.publishing.versions.models import AgentPrompt, PromptVersion


class ReleaseStatus(models.TextChoices):
    """Status of a release. Releases that are requested or approved are open; the others are closed."""

    REQUESTED = "requested", _("Waiting for approval")
    APPROVED = "approved", _("Approved")
    RELEASED = "released", _("Released")
    REJECTED = "rejected", _("Rejected")
    WITHDRAWN = "withdrawn", _("Withdrawn")
    VOIDED = "voided", _("Out of date")


class Release(WorkspaceOwned):
    """A request to move a label on one or more prompts to exact versions."""

    number = models.PositiveIntegerField()
    label = models.CharField(max_length=40)
    message = LineField(max_length=300)
    status = models.CharField(max_length=9, choices=ReleaseStatus.choices, default=ReleaseStatus.REQUESTED)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    requested_label = models.CharField(max_length=254)
    requested_at = models.DateTimeField(auto_now_add=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    decided_label = models.CharField(max_length=254, blank=True)
    decided_at = models.DateTimeField(null=True)
    # Why the release was rejected, voided, or released without approval.
    reason = LineField(max_length=500, blank=True)
    is_override = models.BooleanField(default=False)
    released_at = models.DateTimeField(null=True)
    # See prompts.publishing.releases.changes.measure_prefixes.
    cache_prefixes = models.JSONField(default=dict)

    class Meta(WorkspaceOwned.Meta):
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["workspace", "number"], name="releases_numbered_once"),
            models.CheckConstraint(condition=Q(status__in=ReleaseStatus.values), name="release_status_known"),
            models.CheckConstraint(
                condition=~Q(is_override=True, reason=""), name="an_override_has_a_reason"
            ),
        ]

    def __str__(self) -> str:
        return f"Release {self.number}"


class ReleaseItem(WorkspaceOwned):
    """A prompt of a release, with the version to release.

    `before` is the version that had the label when the release was requested; null if there was none.
    """

    release = TenantForeignKey(Release, on_delete=models.PROTECT, related_name="items")
    prompt = TenantForeignKey(AgentPrompt, on_delete=models.PROTECT, related_name="+")
    version = TenantForeignKey(PromptVersion, on_delete=models.PROTECT, related_name="+")
    digest = models.CharField(max_length=64)
    before = TenantForeignKey(PromptVersion, null=True, on_delete=models.PROTECT, related_name="+")

    class Meta(WorkspaceOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["release", "prompt"], name="prompt_once_per_release")]

    def __str__(self) -> str:
        return f"{self.release} {self.prompt}"


class ReleaseReviewer(WorkspaceOwned):
    """A member who was asked by name to review a release."""

    release = TenantForeignKey(Release, on_delete=models.PROTECT, related_name="reviewers")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    requested_label = models.CharField(max_length=254)
    requested_at = models.DateTimeField(auto_now_add=True)

    class Meta(WorkspaceOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["workspace", "release", "user"], name="release_reviewer_once")
        ]

    def __str__(self) -> str:
        return f"{self.user} reviews {self.release}"


class ReleaseComment(WorkspaceOwned):
    """A comment on a release, or a request for changes. Comments are not edited or deleted."""

    release = TenantForeignKey(Release, on_delete=models.PROTECT, related_name="comments")
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    author_label = models.CharField(max_length=254)
    text = ProseField(max_length=4_000)
    is_change_request = models.BooleanField(default=False)
    at = models.DateTimeField(auto_now_add=True)

    class Meta(WorkspaceOwned.Meta):
        pass

    def __str__(self) -> str:
        return f"Comment {self.pk} on {self.release}"
