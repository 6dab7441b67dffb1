"""API keys of bots and scripts."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from core.db.fields import LineField
from personas.actors import Actor
from personas.api_keys.format import ADMIN, BOT
from personas.tenancy.fields import TenantForeignKey
from personas.tenancy.models import WorkspaceOwned

KEY_KINDS = [(BOT, _("Bot")), (ADMIN, _("Admin"))]


class ApiKey(WorkspaceOwned):
    """An API key. The key itself is shown once, at creation; only its digest is stored.

    A revocation takes effect with the next request.
    """

    name = LineField(max_length=80)
    # A bot key belongs to the workspace. An admin key acts for its creator, and is revoked when the creator
    # leaves the workspace.
    kind = models.CharField(max_length=5, choices=KEY_KINDS, default=BOT)
    # The first characters of the key, such as `drm_bot_x7Kp2Q`, displayed to tell keys apart.
    prefix = models.CharField(max_length=16)
    digest = models.CharField(max_length=64, unique=True)
    # Lists of the actions ("verbs"), agents, channels and labels that the key may be used for. If a list is
    # absent, the key is not limited in that dimension.
    scopes = models.JSONField(default=dict)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    created_label = models.CharField(max_length=254)
    # The first key of a chain of rotations; None for a key that replaces no other.
    origin = TenantForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    # The key that was used to create this key through the API; None if a person created it on a page.
    creator_key = TenantForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="created_keys"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)

    class Meta(WorkspaceOwned.Meta):
        verbose_name = "key"
        constraints = [
            models.UniqueConstraint(fields=["workspace", "name"], name="key_name_once"),
            models.CheckConstraint(condition=Q(kind__in=[BOT, ADMIN]), name="key_kind_known"),
            models.CheckConstraint(
                condition=~Q(kind=ADMIN) | Q(created_by__isnull=False), name="admin_key_has_its_maker"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def actor_label(self) -> str:
        """The label of changes that are made with this key. Names of keys are unique and never change."""
        if self.kind == BOT:
            return Actor.bot(self.name).label
        return f"{self.created_label} (key {self.name})"[:254]

    @property
    def origin_key_id(self) -> int:
        """Id that this key shares with the keys it replaces and those that replace it."""
        return self.origin_id or self.pk
