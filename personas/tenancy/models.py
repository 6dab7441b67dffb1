"""Models that belong to a workspace, and the manager that requires one in every query."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn, Self, TypeVar

from django.core.exceptions import ValidationError
from django.db import connection, models
from django.utils.translation import gettext as _

from personas.workspaces.models import Workspace

T = TypeVar("T", bound="WorkspaceOwned")


class UnscopedQuery(RuntimeError):
    """A query on a tenant table without a workspace."""


class CrossWorkspaceLink(ValidationError):
    """A foreign key from one workspace into another."""


def get_upsert_fields() -> list[str]:
    """Return the conflict target of upserts; SQLite accepts no composite key that contains the row id."""
    return ["workspace", "id"] if connection.vendor == "postgresql" else ["id"]


class TenantQuerySet(models.QuerySet[T]):
    """Applies the foreign key check of `save()` to bulk writes."""

    def update(self, **values: Any) -> int:
        links = {"workspace", *(field.name for field in self.model.list_tenant_links())}
        if refused := sorted(links & {name.removesuffix("_id") for name in values}):
            raise CrossWorkspaceLink(
                f"Set {', '.join(refused)} row by row: only save() looks where a link leads."
            )
        return super().update(**values)

    def bulk_create(self, objs: Iterable[T], *args: Any, **kwargs: Any) -> list[T]:
        rows = list(objs)
        load_link_workspaces(rows)
        for row in rows:
            row.check_foreign_links()
        created = super().bulk_create(rows, *args, **kwargs)
        for row in created:
            row._stored_workspace_id = row.workspace_id
        return created

    def bulk_update(self, objs: Iterable[T], *args: Any, **kwargs: Any) -> int:
        """Check the foreign keys of every row, then use Django's own queryset, whose update() allows them."""
        rows = list(objs)
        load_link_workspaces(rows)
        for row in rows:
            row.check_foreign_links()
        plain: models.QuerySet[T] = models.QuerySet(self.model, query=self.query.chain(), using=self.db)
        return plain.bulk_update(rows, *args, **kwargs)


def load_link_workspaces(rows: Sequence["WorkspaceOwned"]) -> None:
    """Load the workspaces of linked rows with one query per foreign key instead of one per row."""
    for field in rows[0].list_tenant_links() if rows else ():
        uncached = [row for row in rows if not field.is_cached(row)]
        linked = {getattr(row, field.attname) for row in uncached} - {None}
        if linked:
            linked_rows = field.remote_field.model._base_manager.filter(pk__in=linked)
            workspace_ids = dict(linked_rows.values_list("pk", "workspace_id"))
            for row in uncached:
                row._link_workspace_ids = {**row._link_workspace_ids, field.name: workspace_ids}


class ScopedManager(models.Manager[T]):
    """Manager that requires `in_workspace(workspace)`; any other query raises UnscopedQuery."""

    def in_workspace(self, workspace: Workspace | int) -> models.QuerySet[T]:
        return TenantQuerySet(self.model, using=self._db).filter(workspace=workspace)

    def get_queryset(self) -> NoReturn:
        raise UnscopedQuery(f"{self.model.__name__}.objects needs in_workspace(…), or say `unscoped`.")


class WorkspaceOwned(models.Model):
    """A row of one workspace; child rows have the column too, so scoping needs no join."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")

    # First, so that Django itself (relations, constraint checks, admin) uses it as the default manager.
    unscoped: ClassVar[models.Manager[Self]] = models.Manager()
    objects: ClassVar[ScopedManager[Self]] = ScopedManager()
    _stored_workspace_id: int | None = None  # the workspace the row was loaded from or saved to
    # Preloaded workspace ids of linked rows, by foreign key and primary key.
    _link_workspace_ids: Mapping[str, Mapping[int, int]] = MappingProxyType({})

    class Meta:
        abstract = True
        default_manager_name = "unscoped"

    def save(self, *args: Any, **kwargs: Any) -> None:
        self.check_foreign_links()
        super().save(*args, **kwargs)
        self._stored_workspace_id = self.workspace_id

    def clean_fields(self, exclude: Collection[str] | None = None) -> None:
        """Skip the query for the workspace: the database checks the foreign key on every write."""
        super().clean_fields(exclude={*(exclude or ()), *(["workspace"] if self.workspace_id else [])})

    def clean(self) -> None:
        super().clean()
        self.check_foreign_links()

    @classmethod
    def from_db(
        cls, db: str | None, field_names: Collection[str], values: Collection[Any], **options: Any
    ) -> Self:
        row = super().from_db(db, field_names, values, **options)
        if "workspace_id" in field_names:
            row._stored_workspace_id = row.workspace_id
        return row

    def check_foreign_links(self) -> None:
        """Reject a row that moves to another workspace or links to a row of another one."""
        if self._get_stored_workspace_id() not in {None, self.workspace_id}:
            raise CrossWorkspaceLink({"workspace": _("A record cannot move to another workspace.")})
        for field in self.list_tenant_links():
            linked = getattr(self, field.attname)
            if linked is not None and self._get_link_workspace_id(field, linked) != self.workspace_id:
                raise CrossWorkspaceLink({field.name: _("There is no such record in this workspace.")})

    @classmethod
    def list_tenant_links(cls) -> list["models.ForeignKey[Any, Any]"]:
        """Return the foreign keys to other tenant tables."""
        fields = [field for field in cls._meta.concrete_fields if isinstance(field, models.ForeignKey)]
        return [field for field in fields if issubclass(field.remote_field.model, WorkspaceOwned)]

    def _get_stored_workspace_id(self) -> int | None:
        """Return the workspace id stored in the database; query it if the row was not loaded with it."""
        if self._stored_workspace_id is None and self.pk is not None:
            rows = type(self)._base_manager.filter(pk=self.pk)
            self._stored_workspace_id = rows.values_list("workspace_id", flat=True).first()
        return self._stored_workspace_id

    def _get_link_workspace_id(self, field: "models.ForeignKey[Any, Any]", linked: Any) -> int | None:
        if field.is_cached(self):
            workspace_id: int = getattr(self, field.name).workspace_id
            return workspace_id
        if linked in (workspace_ids := self._link_workspace_ids.get(field.name, {})):
            return workspace_ids[linked]
        rows = field.remote_field.model._base_manager.filter(pk=linked)
        return rows.values_list("workspace_id", flat=True).first()
