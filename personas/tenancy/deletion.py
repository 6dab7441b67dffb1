"""Delete rows by workspace and id. Django deletes collected rows by id alone."""

from collections import defaultdict
from typing import Any

from django.db.models.deletion import Collector

from personas.tenancy.fields import get_workspace_filter


class TenantCollector(Collector):
    """Collector of rows to delete whose statements name the workspace.

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
                found = model._base_manager.using(self.using).filter(workspace_id=workspace_id, pk__in=pks)
                self.fast_deletes.append(found)
        self.data.clear()
        counts: tuple[int, dict[str, int]] = super().delete()
        for rows in collected.values():
            for row in rows:
                row.pk = None
        return counts
