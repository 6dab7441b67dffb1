"""Base models of records (content with revisions), and the revisions."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, ClassVar, NamedTuple, cast

from django.conf import settings
from django.db import models
from django.utils import timezone

from core.db.fields import LineField
from personas.tenancy.models import WorkspaceOwned
from personas.workspaces.models import slug_validator, validate_not_reserved


class Record(WorkspaceOwned):
    """Abstract model of versioned content.

    Every change of the content writes a revision, and records are archived instead of deleted. `kind` is the
    name of the record type, and `content` lists the versioned fields.
    """

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
        """Return the content as JSON data.

        Linked records are stored as ids, so renaming a linked record does not change this record's snapshot.
        """
        return {name: self._plain_value(name) for name in self.content}

    def values_from_snapshot(self, data: dict[str, Any]) -> dict[str, Any]:
        """Convert a snapshot to values for `set_values`. A link to a missing record becomes None."""
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
        """Set the content fields that are keys of `values`; the other fields keep their values."""
        for name in self.content:
            if name in values:
                setattr(self, name, values[name])

    def save_children(self, values: dict[str, Any]) -> None:
        """Hook: save the child rows of this record, such as the steps of a task. Most kinds have none."""

    def can_change_prompts(self, before: dict[str, Any] | None, after: dict[str, Any]) -> bool:
        """Whether an edit between these snapshots can change prompts. `before` is None for a new record."""
        return True

    def agent_ids(self) -> list[int]:
        """Return the ids of the agents whose prompts currently depend on this record."""
        own = self.query_agent_ids()
        others = [source.list_ids(self) for source in AGENT_ID_SOURCES]
        return sorted(set(() if own is None else own).union(*others))

    def query_agent_ids(self) -> "models.QuerySet[Any, int] | None":
        """Return the ids of `agent_ids()` as a queryset, for use in a larger query.

        None means that this kind of record has no such queryset.
        """
        return None

    def _plain_value(self, name: str) -> Any:
        field = self._meta.get_field(name)
        value = getattr(self, getattr(field, "attname", name))
        return value.isoformat() if isinstance(value, datetime) else value


class AgentIdSource(NamedTuple):
    """A use of records by agents that this app does not know, such as a choice in prompt settings."""

    kinds: tuple[str, ...]
    # Queries the rows that refer to a record. Arguments: the record's kind, workspace id and primary key.
    list_rows: "Callable[[str, int, int], models.QuerySet[Any]]"
    # Returns the ids of the agents that these rows concern.
    read_ids: Callable[[Iterable[Any]], set[int]]

    def list_ids(self, record: Record) -> set[int]:
        if record.kind not in self.kinds or record.pk is None:
            return set()
        return self.read_ids(self.list_rows(record.kind, record.workspace_id, record.pk))


# Other apps add their sources here.
AGENT_ID_SOURCES: list[AgentIdSource] = []


class Named(Record):
    """A record with a name for lists and an immutable slug for URLs."""

    name = LineField(max_length=80)
    # Without a separate index: queries filter by workspace and slug, and use the index of the unique
    # constraint below.
    slug = models.SlugField(
        max_length=64, db_index=False, validators=[slug_validator, validate_not_reserved], editable=False
    )

    class Meta(Record.Meta):
        abstract = True
        constraints = [
            models.UniqueConstraint(fields=["workspace", "slug"], name="%(class)s_slug_once"),
        ]

    def __str__(self) -> str:
        return self.name


class Revision(WorkspaceOwned):
    """Snapshot of a record's content after one change. Prompt versions refer to the revisions they use."""

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
