"""Foreign keys between models that belong to a workspace. Every query along them names the workspace.

The key of a row is its workspace and its id if the tables are distributed by workspace. A join, a forward or
reverse access and a prefetch therefore compare the workspace as well. In the database and in migrations these
are the foreign keys of Django.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

from django.db import models
from django.db.models.fields import related_descriptors
from django.utils.functional import cached_property

from core.db.workspace_scope import get_scope_id

_ST_contra = TypeVar("_ST_contra", contravariant=True)
_GT_co = TypeVar("_GT_co", covariant=True)
WORKSPACE_COLUMN = "workspace_id"
# Any, because these classes are generic in the type stubs only.
ForwardDescriptor: Any = related_descriptors.ForwardManyToOneDescriptor
ForwardOneToOneDescriptor: Any = related_descriptors.ForwardOneToOneDescriptor
ReverseDescriptor: Any = related_descriptors.ReverseManyToOneDescriptor
ReverseOneToOneDescriptor: Any = related_descriptors.ReverseOneToOneDescriptor


class SameWorkspace:
    """Condition of a join: both rows belong to the same workspace."""

    def __init__(self, alias: str, related_alias: str) -> None:
        self.alias, self.related_alias = alias, related_alias

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        column = connection.ops.quote_name(WORKSPACE_COLUMN)
        left, right = map(compiler.quote_name_unless_alias, (self.alias, self.related_alias))
        return f"{left}.{column} = {right}.{column}", []


def get_workspace_filter(instances: Sequence[Any]) -> dict[str, Any]:
    """Return the condition that rows linked with these instances meet.

    It is empty within the scope of one workspace, where the manager has filtered already, and if the
    workspace of an instance was not loaded.
    """
    if get_scope_id() is not None:
        return {}
    workspace_ids = {instance.__dict__.get(WORKSPACE_COLUMN) for instance in instances}
    if None in workspace_ids:
        return {}
    if len(workspace_ids) == 1:
        return {WORKSPACE_COLUMN: workspace_ids.pop()}
    return {f"{WORKSPACE_COLUMN}__in": sorted(workspace_ids)}


class WorkspacePrefetch:
    """Mixin of descriptors: the query of `prefetch_related` filters by the workspaces of the instances."""

    def get_prefetch_querysets(self, instances: Any, querysets: Any = None) -> Any:
        descriptor: Any = super()
        rows = querysets[0] if querysets else self.get_queryset()  # type: ignore[attr-defined]
        return descriptor.get_prefetch_querysets(instances, [filter_prefetched(rows, instances)])


def filter_prefetched(rows: Any, instances: Sequence[Any]) -> Any:
    # A sliced queryset cannot be filtered here; Django's own prefetch code handles slices.
    return rows if rows.query.is_sliced else rows.filter(**get_workspace_filter(instances))


class TenantForwardDescriptor(WorkspacePrefetch, ForwardDescriptor):  # type: ignore[misc]  # see above
    pass


class TenantForwardOneToOneDescriptor(WorkspacePrefetch, ForwardOneToOneDescriptor):  # type: ignore[misc]  # see above
    pass


class TenantReverseOneToOneDescriptor(WorkspacePrefetch, ReverseOneToOneDescriptor):  # type: ignore[misc]  # see above
    pass


class TenantReverseDescriptor(ReverseDescriptor):  # type: ignore[misc]  # see above
    """Creates the manager of a reverse foreign key, such as `agent.tool_links`."""

    @cached_property
    def related_manager_cls(self) -> Any:
        manager: Any = super().related_manager_cls

        class TenantRelatedManager(manager):  # type: ignore[misc]  # created at runtime
            def _apply_rel_filters(self, queryset: Any) -> Any:
                rows = queryset.filter(**get_workspace_filter([self.instance]))
                return super()._apply_rel_filters(rows)

            def get_prefetch_querysets(self, instances: Any, querysets: Any = None) -> Any:
                # Skip the class `manager`, whose get_queryset would filter by `self.instance`.
                rows = querysets[0] if querysets else super(manager, self).get_queryset()
                return super().get_prefetch_querysets(instances, [filter_prefetched(rows, instances)])

        return TenantRelatedManager


class TenantLink:
    """Mixin of foreign keys from one model that belongs to a workspace to another one."""

    def get_extra_restriction(self, alias: Any, related_alias: Any) -> Any:
        """Return the condition that Django adds to each join along this key.

        `alias` is None in the subquery of `exclude(children__name=…)`, which Django joins by the key alone.
        Use `Exists` with the workspace there.
        """
        return SameWorkspace(alias, related_alias) if alias and related_alias else None

    def get_extra_descriptor_filter(self, instance: Any) -> dict[str, Any]:
        return get_workspace_filter([instance])

    def get_forward_related_filter(self, obj: Any) -> dict[str, Any]:
        key_filter: dict[str, Any] = super().get_forward_related_filter(obj)  # type: ignore[misc]
        return {**key_filter, **get_workspace_filter([obj])}


class TenantForeignKey(TenantLink, models.ForeignKey[_ST_contra, _GT_co]):
    """Foreign key between two models that belong to a workspace."""

    forward_related_accessor_class = TenantForwardDescriptor
    related_accessor_class = TenantReverseDescriptor

    def deconstruct(self) -> Any:
        name, _path, args, kwargs = super().deconstruct()
        return name, "django.db.models.ForeignKey", args, kwargs


class TenantOneToOneField(TenantLink, models.OneToOneField[_ST_contra, _GT_co]):
    """One-to-one relation between two models that belong to a workspace."""

    forward_related_accessor_class = TenantForwardOneToOneDescriptor
    related_accessor_class = TenantReverseOneToOneDescriptor

    def deconstruct(self) -> Any:
        name, _path, args, kwargs = super().deconstruct()
        return name, "django.db.models.OneToOneField", args, kwargs
