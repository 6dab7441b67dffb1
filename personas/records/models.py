"""Record: the base of all edited content, with its revisions."""

from datetime import datetime
from typing import Any, ClassVar, cast

from django.conf import settings
from django.db import models
from django.utils import timezone

from core.db.fields import LineField
from personas.tenancy.models import WorkspaceOwned
from personas.workspaces.models import slug_validator, validate_not_reserved


class Record(WorkspaceOwned):
    """Content that people edit: every change leaves a revision, and nothing is deleted."""

    kind: ClassVar[str]
    content: ClassVar[tuple[str, ...]]

    revision = models.PositiveIntegerField(default=0, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(default=timezone.now, editable=False)
    archived_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta(WorkspaceOwned.Meta):
        abstract = True

    @property
    def is_archived(self) -> bool:
        return self.archived_at is not None

    def snapshot(self) -> dict[str, Any]:
        """The content as plain data; links are ids, so a rename elsewhere is no change here."""
        return {name: self._plain_value(name) for name in self.content}

    def values_from_snapshot(self, data: dict[str, Any]) -> dict[str, Any]:
        """The inverse of `snapshot`: stored data back to values that `set_values` takes."""
        fields = {name: self._meta.get_field(name) for name in self.content if name in data}
        values: dict[str, Any] = {}
        for name, field in fields.items():
            if isinstance(field, models.ForeignKey):
                rows = cast("type[WorkspaceOwned]", field.remote_field.model).objects.in_workspace(
                    self.workspace_id
                )
                values[name] = rows.filter(pk=data[name]).first() if data[name] is not None else None
            else:
                values[name] = cast("models.Field[Any, Any]", field).to_python(data[name])
        return values

    def set_values(self, values: dict[str, Any]) -> None:
        """Set the plain fields among the values."""
        for name in self.content:
            if name in values:
                setattr(self, name, values[name])

    def save_children(self, values: dict[str, Any]) -> None:
        """Write the rows that belong to this record; most kinds have none."""

    def agent_ids(self) -> list[int]:
        """The agents whose prompts this record feeds now."""
        ids = self.query_agent_ids()
        return [] if ids is None else sorted(set(ids))

    def query_agent_ids(self) -> "models.QuerySet[Any, int] | None":
        """The same as one question, for those who have more to ask; None where it takes more than that."""
        return None

    def _plain_value(self, name: str) -> Any:
        field = self._meta.get_field(name)
        value = getattr(self, getattr(field, "attname", name))
        return value.isoformat() if isinstance(value, datetime) else value


class Named(Record):
    """A record with a label for people and a slug for addresses; the slug never changes."""

    label = LineField(max_length=80)
    # Asked for with its workspace, so the index of the constraint below finds it.
    slug = models.SlugField(
        max_length=64, db_index=False, validators=[slug_validator, validate_not_reserved], editable=False
    )

    class Meta(Record.Meta):
        abstract = True
        constraints = [
            models.UniqueConstraint(fields=["workspace", "slug"], name="%(class)s_slug_once"),
        ]

    def __str__(self) -> str:
        return self.label


class Revision(WorkspaceOwned):
    """The whole content of a record after one change; prompts point at these."""

    kind = models.CharField(max_length=20)
    object_id = models.BigIntegerField()
    number = models.PositiveIntegerField()
    data = models.JSONField()
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    author_label = models.CharField(max_length=254)
    message = models.CharField(max_length=200, blank=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta(WorkspaceOwned.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "kind", "object_id", "number"], name="revisions_numbered_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.object_id} r{self.number}"
