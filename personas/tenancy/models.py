"""Base class for models that belong to a workspace. Its manager requires a workspace in every query."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn, Self, TypeVar

from django.core.exceptions import ValidationError
from django.db import connection, models, router
from django.db.models.deletion import Collector
from django.utils.translation import gettext as _

from core.db.fast import WriteBatch, can_insert_rows
from core.db.workspace_scope import get_scope_id
from personas.tenancy.fields import get_workspace_filter
from personas.tenancy.model_rows import build_instance
from personas.workspaces.models import Workspace

T = TypeVar("T", bound="WorkspaceOwned")


class UnscopedQuery(RuntimeError):
    """A model that belongs to a workspace was queried without `in_workspace`."""


class CrossWorkspaceLink(ValidationError):
    """A row refers to a row of another workspace, or was moved to another workspace."""


def get_upsert_fields() -> list[str]:
    """Return the columns for ON CONFLICT in upserts.

    PostgreSQL uses the workspace and the id. SQLite uses the id alone, because it accepts no composite key
    that contains the row id.
    """
    return ["workspace", "id"] if connection.vendor == "postgresql" else ["id"]


class TenantQuerySet(models.QuerySet[T]):
    """Queryset that checks foreign keys in bulk writes, as `save()` does: no link to another workspace."""

    def update(self, **values: Any) -> int:
        links = {"workspace", *(field.name for field in self.model.list_tenant_links())}
        if refused := sorted(links & {name.removesuffix("_id") for name in values}):
            raise CrossWorkspaceLink(
                f"Set {', '.join(refused)} row by row: only save() checks the workspace of related rows."
            )
        return super().update(**values)

    def bulk_create(
        self, objs: Iterable[T], *args: Any, batch: WriteBatch | None = None, **options: Any
    ) -> list[T]:
        """Insert the rows as Django does. Few rows are inserted with a statement that is compiled once.

        With `batch`, these are inserted when the batch is sent. With `has_keys`, the rows have primary keys
        that were reserved for them.
        """
        has_keys = options.pop("has_keys", False)
        rows = list(objs)
        if has_keys:
            # The keys were reserved for these rows, so no row with such a key needs to be looked up.
            for row in rows:
                row._stored_workspace_id = row.workspace_id
        load_link_workspaces(rows)
        for row in rows:
            row.check_foreign_links()
        is_upsert = bool(options.get("update_conflicts"))
        if (
            args
            or options.get("ignore_conflicts")
            or not can_insert_rows(rows, has_keys=is_upsert or has_keys)
        ):
            rows = super().bulk_create(rows, *args, **options)
        else:
            unique_fields, update_fields = options.get("unique_fields", ()), options.get("update_fields", ())
            writes = batch or WriteBatch()
            writes.add(
                self.model,
                rows,
                unique_fields=unique_fields,
                update_fields=update_fields,
                has_keys=has_keys,
            )
            if batch is None:
                writes.send()
        for row in rows:
            row._stored_workspace_id = row.workspace_id
        return rows

    def bulk_update(self, objs: Iterable[T], *args: Any, **kwargs: Any) -> int:
        """Check the foreign keys of every row, then update the rows.

        The update uses Django's own queryset, because `update()` of this class rejects foreign keys.
        """
        rows = list(objs)
        load_link_workspaces(rows)
        for row in rows:
            row.check_foreign_links()
        plain: models.QuerySet[T] = models.QuerySet(self.model, query=self.query.chain(), using=self.db)
        return plain.bulk_update(rows, *args, **kwargs)


def load_link_workspaces(rows: Sequence["WorkspaceOwned"]) -> None:
    """Preload the workspace ids of the rows that `rows` refer to, for `check_foreign_links`.

    This takes one query per foreign key instead of one per row.
    """
    for field in rows[0].list_tenant_links() if rows else ():
        uncached = [row for row in rows if not field.is_cached(row)]
        linked = {getattr(row, field.attname) for row in uncached} - {None}
        if linked:
            workspaces = {row.workspace_id for row in uncached}
            linked_rows = field.remote_field.model._base_manager.filter(
                pk__in=linked, workspace_id__in=workspaces
            )
            workspace_ids = dict(linked_rows.values_list("pk", "workspace_id"))
            for row in uncached:
                row._link_workspace_ids = {**row._link_workspace_ids, field.name: workspace_ids}


class ScopedManager(models.Manager[T]):
    """Manager whose queries must start with `in_workspace(workspace)`; other queries raise UnscopedQuery."""

    def in_workspace(self, workspace: Workspace | int) -> models.QuerySet[T]:
        return TenantQuerySet(self.model, using=self._db).filter(workspace=workspace)

    def insert(self, rows: Iterable[T], **options: Any) -> list[T]:
        """Insert rows as `bulk_create` does; each names its workspace. It needs no query to start from."""
        unfiltered: TenantQuerySet[T] = TenantQuerySet(self.model, using=self._db)
        return unfiltered.bulk_create(rows, **options)

    def get_queryset(self) -> NoReturn:
        raise UnscopedQuery(
            f"{self.model.__name__}.objects requires in_workspace(…). Use `unscoped` "
            "to read across workspaces."
        )


class UnscopedManager(models.Manager[T]):
    """Manager for queries across workspaces. It is the default and base manager, which Django uses itself.

    Within the scope of one workspace it returns rows of that workspace only, as row-level security does. So
    relations, `refresh_from_db`, uniqueness checks and the UPDATE of `save()` name the workspace too.
    """

    def get_queryset(self) -> models.QuerySet[T]:
        rows = super().get_queryset()
        scope_id = get_scope_id()
        return rows if scope_id is None else rows.filter(workspace_id=scope_id)


class TenantCollector(Collector):
    """Collector of rows to delete whose statements name the workspace. Django deletes collected rows by id.

    The rows are deleted as Django deletes querysets, so no `pre_delete` and `post_delete` signals are sent.
    No model that belongs to a workspace has receivers for them.
    """

    def related_objects(self, related_model: Any, related_fields: Any, objs: Any) -> Any:
        """Return the rows that refer to these, of the same workspaces."""
        return (
            super().related_objects(related_model, related_fields, objs).filter(**get_workspace_filter(objs))
        )

    def delete(self) -> tuple[int, dict[str, int]]:
        collected: dict[Any, Any] = dict(self.data)
        # Children are collected after their parents, and deleted before them.
        for model, rows in reversed(collected.items()):
            ids = defaultdict[int, list[Any]](list)
            for row in rows:
                ids[row.workspace_id].append(row.pk)
            for workspace_id, pks in ids.items():
                found = model.objects.in_workspace(workspace_id).using(self.using).filter(pk__in=pks)
                self.fast_deletes.append(found)
        self.data.clear()
        counts: tuple[int, dict[str, int]] = super().delete()
        for rows in collected.values():
            for row in rows:
                row.pk = None
        return counts


class WorkspaceOwned(models.Model):
    """Base class of models whose rows belong to one workspace.

    Child tables have the column `workspace` too, so that a query limited to a workspace needs no join.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")

    # Defined first, so that Django uses it as the default manager for relations, constraints and the admin.
    unscoped: ClassVar[UnscopedManager[Self]] = UnscopedManager()
    objects: ClassVar[ScopedManager[Self]] = ScopedManager()
    _stored_workspace_id: int | None = None  # the workspace the row was loaded from or saved to
    # Preloaded workspace ids of linked rows, by name of the foreign key and primary key of the linked row.
    _link_workspace_ids: Mapping[str, Mapping[int, int]] = MappingProxyType({})

    class Meta:
        abstract = True
        default_manager_name = "unscoped"
        base_manager_name = "unscoped"

    def save(self, *args: Any, **kwargs: Any) -> None:
        self.check_foreign_links()
        super().save(*args, **kwargs)
        self._stored_workspace_id = self.workspace_id

    def delete(self, using: str | None = None, keep_parents: bool = False) -> tuple[int, dict[str, int]]:
        if self.pk is None:
            raise ValueError(f"{type(self).__name__} has no ID, so it cannot be deleted.")
        collector = TenantCollector(using or router.db_for_write(type(self), instance=self), origin=self)
        collector.collect([self], keep_parents=keep_parents)
        return collector.delete()

    def clean_fields(self, exclude: Collection[str] | None = None) -> None:
        """Validate all fields except the workspace.

        Validation would query whether the workspace exists. The database checks this on every write anyway.
        """
        super().clean_fields(exclude={*(exclude or ()), *(["workspace"] if self.workspace_id else [])})

    def clean(self) -> None:
        super().clean()
        self.check_foreign_links()

    @classmethod
    def from_db(
        cls, db: str | None, field_names: Collection[str], values: Collection[Any], **options: Any
    ) -> Self:
        row = None if options else build_instance(cls, db, field_names, values)
        if row is None:
            row = super().from_db(db, field_names, values, **options)
        if (workspace_id := row.__dict__.get("workspace_id")) is not None:
            row._stored_workspace_id = workspace_id
        return row

    def check_foreign_links(self) -> None:
        """Raise CrossWorkspaceLink if the row moved to, or has a foreign key into, another workspace."""
        if self._get_stored_workspace_id() not in {None, self.workspace_id}:
            raise CrossWorkspaceLink({"workspace": _("A record cannot be moved to another workspace.")})
        for field in self.list_tenant_links():
            linked = getattr(self, field.attname)
            if linked is not None and self._get_link_workspace_id(field, linked) != self.workspace_id:
                raise CrossWorkspaceLink({field.name: _("This record does not exist in this workspace.")})

    @classmethod
    @cache
    def list_tenant_links(cls) -> list["models.ForeignKey[Any, Any]"]:
        """Return the foreign keys to models that also belong to a workspace."""
        fields = [field for field in cls._meta.concrete_fields if isinstance(field, models.ForeignKey)]
        return [field for field in fields if issubclass(field.remote_field.model, WorkspaceOwned)]

    def _do_update(self, base_qs: Any, using: Any, pk_val: Any, values: Any, *options: Any) -> Any:
        """Update the row with this workspace and id. The workspace of a row never changes."""
        if get_scope_id() is None:
            base_qs = base_qs.filter(workspace_id=self.workspace_id)
        kept = [value for value in values if value[0].name != "workspace"]
        return super()._do_update(base_qs, using, pk_val, kept, *options)

    def _get_stored_workspace_id(self) -> int | None:
        """Return the workspace id that the database has for this row, or None for a new row.

        It is queried only if it is not known from loading or saving the row.
        """
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
        rows = field.remote_field.model._base_manager.filter(pk=linked, workspace_id=self.workspace_id)
        return rows.values_list("workspace_id", flat=True).first()


# Subclasses take the base manager from their parent class. If their `Meta` inherited the option, it would be
# part of the migrations of every model, although it does not concern the database.
del WorkspaceOwned.Meta.base_manager_name
