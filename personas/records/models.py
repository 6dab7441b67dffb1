"""The two gates for rows: every tenant table has a workspace, and every query says which."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn, Self, TypeVar, cast

from django.core.exceptions import ValidationError
from django.db import connection, models
from django.utils import timezone
from django.utils.translation import gettext as _

from core.db.fields import LineField
from personas.workspaces.models import Workspace, refuse_reserved, slug_rule

T = TypeVar("T", bound="WorkspaceOwned")


class UnscopedQuery(RuntimeError):
    """A query on a tenant table that does not say for which workspace."""


class ForeignLink(ValidationError):
    """A link from one workspace into another."""


def own_key() -> list[str]:
    """The fields by which rows written once more are told; SQLite takes no key that holds its row number."""
    return ["workspace", "id"] if connection.vendor == "postgresql" else ["id"]


class TenantQuerySet(models.QuerySet[T]):
    """Closes the ways past `save()`: what is written in bulk is held to the same rule."""

    def update(self, **values: Any) -> int:
        links = {"workspace", *(field.name for field in self.model.tenant_links())}
        if refused := sorted(links & {name.removesuffix("_id") for name in values}):
            raise ForeignLink(f"Set {', '.join(refused)} row by row: only save() looks where a link leads.")
        return super().update(**values)

    def bulk_create(self, objs: Iterable[T], *args: Any, **kwargs: Any) -> list[T]:
        rows = list(objs)
        find_homes(rows)
        for row in rows:
            row.refuse_foreign_links()
        made = super().bulk_create(rows, *args, **kwargs)
        for row in made:
            row._home = row.workspace_id
        return made

    def bulk_update(self, objs: Iterable[T], *args: Any, **kwargs: Any) -> int:
        """Each row has looked where its links lead, so the stock way behind it may set them."""
        rows = list(objs)
        find_homes(rows)
        for row in rows:
            row.refuse_foreign_links()
        plain: models.QuerySet[T] = models.QuerySet(self.model, query=self.query.chain(), using=self.db)
        return plain.bulk_update(rows, *args, **kwargs)


def find_homes(rows: Sequence["WorkspaceOwned"]) -> None:
    """Tell rows where their links lead: one question for each kind of link, not for each row."""
    for field in rows[0].tenant_links() if rows else ():
        asking = [row for row in rows if not field.is_cached(row)]
        linked = {getattr(row, field.attname) for row in asking} - {None}
        if linked:
            found = field.remote_field.model._base_manager.filter(pk__in=linked)
            homes = dict(found.values_list("pk", "workspace_id"))
            for row in asking:
                row._link_homes = {**row._link_homes, field.name: homes}


class ScopedManager(models.Manager[T]):
    """Everyday access: `in_workspace(workspace)` first, or an error."""

    def in_workspace(self, workspace: Workspace | int) -> models.QuerySet[T]:
        return TenantQuerySet(self.model, using=self._db).filter(workspace=workspace)

    def get_queryset(self) -> NoReturn:
        raise UnscopedQuery(f"{self.model.__name__}.objects needs in_workspace(…), or say `unscoped`.")


class WorkspaceOwned(models.Model):
    """A row of one workspace; children carry it too, so no join is needed to know whose they are."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")

    # First, so that Django's own machinery (relations, constraint checks, admin) uses it and not the gate.
    unscoped: ClassVar[models.Manager[Self]] = models.Manager()
    objects: ClassVar[ScopedManager[Self]] = ScopedManager()
    _home: int | None = None  # the workspace the row was loaded from or saved to
    # By the name of the link: where rows that it may lead to lie, as far as somebody has asked already.
    _link_homes: Mapping[str, Mapping[int, int]] = MappingProxyType({})

    class Meta:
        abstract = True
        default_manager_name = "unscoped"

    def save(self, *args: Any, **kwargs: Any) -> None:
        self.refuse_foreign_links()
        super().save(*args, **kwargs)
        self._home = self.workspace_id

    def clean_fields(self, exclude: Collection[str] | None = None) -> None:
        """Whether the workspace is there the database asks itself, with every row that is written."""
        super().clean_fields(exclude={*(exclude or ()), *(["workspace"] if self.workspace_id else [])})

    def clean(self) -> None:
        super().clean()
        self.refuse_foreign_links()

    @classmethod
    def from_db(
        cls, db: str | None, field_names: Collection[str], values: Collection[Any], **more: Any
    ) -> Self:
        row = super().from_db(db, field_names, values, **more)
        if "workspace_id" in field_names:
            row._home = row.workspace_id
        return row

    def refuse_foreign_links(self) -> None:
        """Stop a row from moving to, or pointing into, another workspace."""
        if self._stored_home() not in {None, self.workspace_id}:
            raise ForeignLink({"workspace": _("A record cannot move to another workspace.")})
        for field in self.tenant_links():
            linked = getattr(self, field.attname)
            if linked is not None and self._workspace_of(field, linked) != self.workspace_id:
                raise ForeignLink({field.name: _("There is no such record in this workspace.")})

    @classmethod
    def tenant_links(cls) -> list["models.ForeignKey[Any, Any]"]:
        """The foreign keys that lead to other tenant rows."""
        fields = [field for field in cls._meta.concrete_fields if isinstance(field, models.ForeignKey)]
        return [field for field in fields if issubclass(field.remote_field.model, WorkspaceOwned)]

    def _stored_home(self) -> int | None:
        """Where the row lies in the database, also when it was loaded in part or named by its id alone."""
        if self._home is None and self.pk is not None:
            rows = type(self)._base_manager.filter(pk=self.pk)
            self._home = rows.values_list("workspace_id", flat=True).first()
        return self._home

    def _workspace_of(self, field: "models.ForeignKey[Any, Any]", linked: Any) -> int | None:
        if field.is_cached(self):
            workspace_id: int = getattr(self, field.name).workspace_id
            return workspace_id
        if linked in (homes := self._link_homes.get(field.name, {})):
            return homes[linked]
        rows = field.remote_field.model._base_manager.filter(pk=linked)
        return rows.values_list("workspace_id", flat=True).first()


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
        return {name: self._plain(name) for name in self.content}

    def values_from(self, data: dict[str, Any]) -> dict[str, Any]:
        """The inverse of `snapshot`: stored data back to values that `put` takes."""
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

    def put(self, values: dict[str, Any]) -> None:
        """Set the plain fields among the values."""
        for name in self.content:
            if name in values:
                setattr(self, name, values[name])

    def put_children(self, values: dict[str, Any]) -> None:
        """Write the rows that belong to this record; most kinds have none."""

    def agent_ids(self) -> list[int]:
        """The agents whose prompts this record feeds now."""
        fed = self.agents_fed()
        return [] if fed is None else sorted(set(fed))

    def agents_fed(self) -> "models.QuerySet[Any, int] | None":
        """The same as one question, for those who have more to ask; None where it takes more than that."""
        return None

    def _plain(self, name: str) -> Any:
        field = self._meta.get_field(name)
        value = getattr(self, getattr(field, "attname", name))
        return value.isoformat() if isinstance(value, datetime) else value


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
