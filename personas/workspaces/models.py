"""Workspaces (tenants) and user accounts."""

from typing import Any, ClassVar

from django.contrib.auth.base_user import BaseUserManager
from django.contrib.auth.models import AbstractUser
from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator, RegexValidator
from django.db import models
from django.db.models.functions import Lower
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.db.fields import LineField
from core.db.line_lists import LineListField
from core.timezones import validate_timezone

slug_validator = RegexValidator(
    r"\A[a-z0-9]+(?:-[a-z0-9]+)*\Z", _("Use lowercase letters, digits and single hyphens."), code="slug"
)


# Slugs that no record may have, because URLs such as `/souls/new` use them for other pages.
RESERVED_SLUGS = {"new", "import"}
MAX_FORMER_SLUGS = 20


def validate_not_reserved(value: str) -> None:
    """Raise ValidationError for a slug in RESERVED_SLUGS: its URL belongs to another page."""
    if value in RESERVED_SLUGS:
        raise ValidationError(
            gettext("“%(value)s” is reserved. Choose another one."), "reserved", {"value": value}
        )


class UserManager(BaseUserManager["User"]):
    """Creates users, who sign in with an email address instead of a user name."""

    def create_user(self, email: str, password: str | None = None, **extra: Any) -> "User":
        user = self.model(email=email.strip().lower(), **extra)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **extra: Any) -> "User":
        return self.create_user(email, password, is_staff=True, is_superuser=True, **extra)


class User(AbstractUser):
    """An account that signs in. Unlike it, a UserProfile describes a person that an agent talks to."""

    username = None  # type: ignore[assignment]  # users sign in by email
    first_name = None  # type: ignore[assignment]  # one name field serves all naming customs
    last_name = None  # type: ignore[assignment]
    email = models.EmailField(_("email address"), unique=True)
    name = LineField(max_length=80, blank=True)
    timezone = LineField(max_length=64, default="UTC", validators=[validate_timezone])
    # How many workspaces may count for this user, set by operators. None: DRAMATIS_WORKSPACES_PER_PERSON.
    workspace_limit = models.PositiveIntegerField(null=True, blank=True)

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []
    objects: ClassVar[UserManager] = UserManager()  # type: ignore[assignment]  # replaces the username manager

    class Meta:
        constraints = [models.UniqueConstraint(Lower("email"), name="user_email_once_in_any_case")]

    def __str__(self) -> str:
        return self.name or self.email

    def get_full_name(self) -> str:
        return self.name

    def get_short_name(self) -> str:
        return self.name or self.email


class ReleasePolicy(models.TextChoices):
    """Whether a new prompt version is released to production automatically or only after a review."""

    AUTOMATIC = "automatic", _("Automatic: production follows the latest build")
    REVIEWED = "reviewed", _("Reviewed: another member approves first")


class Workspace(models.Model):
    """A workspace (tenant). No data is shared between workspaces."""

    name = LineField(max_length=80)
    slug = models.SlugField(max_length=48, unique=True, validators=[slug_validator])
    # Earlier slugs of the workspace, newest first. URLs with them redirect members to the current slug.
    former_slugs = LineListField(
        max_items=MAX_FORMER_SLUGS, item_length=48, blank=True, default=list, db_default="", editable=False
    )
    # If True, a discovered skill is used in prompts only after its current content was approved.
    skills_need_trust = models.BooleanField(default=True)
    last_task_number = models.PositiveIntegerField(default=0, editable=False)
    # Retention period of ledger rows in months. Auditors need at least half a year.
    ledger_months = models.PositiveSmallIntegerField(default=24, validators=[MinValueValidator(6)])
    # Release policy of new agents. Changing it does not change existing agents.
    default_release_policy = models.CharField(
        max_length=10,
        choices=ReleasePolicy.choices,
        default=ReleasePolicy.AUTOMATIC,
        db_default=ReleasePolicy.AUTOMATIC.value,
    )
    # If True, members without a second factor are redirected to the page that sets one up.
    requires_second_factor = models.BooleanField(default=False, db_default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    # The user whose limits the workspace counts towards, together with the user's other workspaces.
    counted_for = models.ForeignKey(
        User, null=True, on_delete=models.SET_NULL, related_name="counted_workspaces", editable=False
    )
    # Set by delete_workspace. The pages then return 404, and owners can restore the workspace for some days.
    deleted_at = models.DateTimeField(null=True, editable=False)
    # Set when the rows of a deleted workspace were removed. Only this row and its removal erasure are left.
    removed_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(ledger_months__gte=6), name="ledger_kept_half_a_year_at_least"
            )
        ]

    def __str__(self) -> str:
        return self.name
