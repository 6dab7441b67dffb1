"""Model of identities: who an agent is."""

from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _

from core.db.compiled_query import BoundQuery
from core.db.fields import LineField, ProseField
from personas.agents.models import get_agents_query, list_agent_ids_using
from personas.persona_files.format import IDENTITY_KEYS, IdentityFile, render_identity
from personas.records.models import Named
from personas.user_profiles.models import validate_extra_front_matter


class Identity(Named):
    """An agent's name, emoji, creature and vibe; imported from and exported to IDENTITY.md."""

    kind = "identity"
    content = ("name", "display_name", "emoji", "creature", "vibe", "text", "extra")
    usage_fields = frozenset()

    display_name = LineField(max_length=80, blank=True)
    emoji = LineField(max_length=32, blank=True)
    creature = LineField(max_length=120, blank=True)
    vibe = LineField(max_length=200, blank=True)
    text = ProseField(max_length=20_000, blank=True)
    extra = ProseField(_("other front matter"), max_length=8_000, blank=True)

    class Meta(Named.Meta):
        verbose_name_plural = "identities"

    def clean(self) -> None:
        super().clean()
        validate_extra_front_matter(self.extra, IDENTITY_KEYS, lambda: render_identity(self.as_file()))

    def as_file(self) -> IdentityFile:
        return IdentityFile(self.display_name, self.emoji, self.creature, self.vibe, self.text, self.extra)

    def query_agent_ids(self) -> "models.QuerySet[Any, int]":
        return list_agent_ids_using("identity", self.workspace_id, self.pk)

    def bind_own_agent_ids(self) -> BoundQuery:
        return get_agents_query("identity").bind(self.workspace_id, self.pk)
