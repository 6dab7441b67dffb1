"""Records that agents share and that are addressed by a slug."""

from django.db import models

from core.db.fields import LineField
from personas.records.models import Record
from personas.workspaces.models import refuse_reserved, slug_rule


class Named(Record):
    """A record with a label for people and a slug for addresses; the slug never changes."""

    label = LineField(max_length=80)
    # Asked for with its workspace, so the index of the constraint below finds it.
    slug = models.SlugField(
        max_length=64, db_index=False, validators=[slug_rule, refuse_reserved], editable=False
    )

    class Meta(Record.Meta):
        abstract = True
        constraints = [
            models.UniqueConstraint(fields=["workspace", "slug"], name="%(class)s_slug_once"),
        ]

    def __str__(self) -> str:
        return self.label
