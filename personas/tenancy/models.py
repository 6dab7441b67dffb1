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
    """A query on a tenant table that does not say for which workspace."""


class CrossWorkspaceLink(ValidationError):
    """A link from one workspace into another."""


def get_upsert_fields() -> list[str]:
    """The fields by which rows written once more are told; SQLite takes no key that holds its row number."""
    return ["workspace", "id"] if connection.vendor == "postgresql" else ["id"]


class TenantQuerySet(models.QuerySet[T]):
    """Closes the ways past `save()`: what is written in bulk is held to the same rule."""

    def update(self, **values: Any) -> int:
        links = {"workspace", *(field.name for field in self.model.tenant_links())}
        if refused := sorted(links & {name.removesuffix("_id") for name in values}):
            raise CrossWorkspaceLink(
                f"Set {', '.join(refused)} row by row: only save() looks where a link leads."
            )
        return super().update(**values)

    def bulk_create(self, objs: Iterable[T], *args: Any, **kwargs: Any) -> list[T]:
        rows = list(objs)
        load_link_workspaces(rows)
        for row in rows:
            row.refuse_foreign_links()
        made = super().bulk_create(rows, *args, **kwargs)
        for row in made:
            row._home = row.workspace_id
        return made

    def bulk_update(self, objs: Iterable[T], *args: Any, **kwargs: Any) -> int:
        """Each row has looked where its links lead, so the stock way behind it may set them."""
        rows = list(objs)
        load_link_workspaces(rows)
        for row in rows:
            row.refuse_foreign_links()
        plain: models.QuerySet[T] = models.QuerySet(self.model, query=self.query.chain(), using=self.db)
        return plain.bulk_update(rows, *args, **kwargs)


def load_link_workspaces(rows: Sequence["WorkspaceOwned"]) -> None:
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
            raise CrossWorkspaceLink({"workspace": _("A record cannot move to another workspace.")})
        for field in self.tenant_links():
            linked = getattr(self, field.attname)
            if linked is not None and self._workspace_of(field, linked) != self.workspace_id:
                raise CrossWorkspaceLink({field.name: _("There is no such record in this workspace.")})

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
