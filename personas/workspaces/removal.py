"""Remove all rows of workspaces that were deleted and can no longer be restored.

The row of the workspace stays as a tombstone without name and slug, so that copies of its checkpoints are not
reported as those of a workspace that disappeared.
"""

from datetime import datetime, timedelta

import structlog
from django.apps import apps
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from core.db.expiry import REMOVAL_KIND
from core.db.workspace_scope import workspace_scope
from personas.models import Erasure, Workspace, WorkspaceOwned
from personas.tenancy.lost_nodes import list_unreachable_workspaces, lock_workspace
from personas.workspaces.deletion import RESTORE_DAYS

log = structlog.get_logger(__name__)

BATCH_SIZE = 2_000
# Added to RESTORE_DAYS: the triggers of append-only tables use the database clock, which may differ.
CLOCK_MARGIN = timedelta(hours=1)
OwnedModel = type[WorkspaceOwned]


def remove_deleted_workspaces(now: datetime | None = None) -> int:
    """Remove the workspaces whose time to be restored is over, and return their number.

    An error with one of them is logged and does not stop the others; the next run continues.
    """
    cutoff = (now or timezone.now()) - timedelta(days=RESTORE_DAYS) - CLOCK_MARGIN
    due = Workspace.objects.filter(deleted_at__lt=cutoff, removed_at=None).order_by("pk")
    unreachable, count = list_unreachable_workspaces(), 0
    for workspace_id in due.values_list("pk", flat=True):
        if workspace_id in unreachable:
            continue
        try:
            with workspace_scope(workspace_id):
                count += remove_workspace(workspace_id, cutoff)
        except DatabaseError:
            log.exception("workspace_removal_failed", workspace=workspace_id)
    return count


def remove_workspace(workspace_id: int, cutoff: datetime) -> bool:
    """Remove the rows of a workspace that was deleted before the cutoff. Return whether it was.

    Rows that no others refer to, which are most, are deleted in batches. The rest is one transaction, because
    their foreign keys form circles and are checked at the commit.
    """
    leaves, others = split_models(list_owned_models())
    for model in leaves:
        delete_rows_in_batches(model, workspace_id)
    with transaction.atomic():
        workspace = lock_workspace(workspace_id)
        if workspace.deleted_at is None or workspace.deleted_at >= cutoff or workspace.removed_at:
            return False
        for model in (*leaves, *others):
            delete_rows(model, workspace_id)
        Erasure.objects.in_workspace(workspace_id).exclude(kind=REMOVAL_KIND).delete()
        workspace.name, workspace.slug = f"Deleted workspace {workspace_id}", f"deleted-{workspace_id}"
        workspace.former_slugs, workspace.removed_at = [], timezone.now()
        workspace.save(update_fields=["name", "slug", "former_slugs", "removed_at"])
    log.info("workspace_removed", workspace=workspace_id)
    return True


def list_owned_models() -> list[OwnedModel]:
    """Return the models whose rows belong to a workspace, except erasures, which allow the removal."""
    models = [model for model in apps.get_models() if issubclass(model, WorkspaceOwned)]
    return [model for model in models if model is not Erasure]


def split_models(models: list[OwnedModel]) -> tuple[list[OwnedModel], list[OwnedModel]]:
    """Return the models that no foreign key of a model leads to, and the others."""
    targets = {field.remote_field.model for model in models for field in model.list_tenant_links()}
    return [model for model in models if model not in targets], [
        model for model in models if model in targets
    ]


def delete_rows_in_batches(model: OwnedModel, workspace_id: int) -> None:
    rows = model.objects.in_workspace(workspace_id)
    while keys := list(rows.order_by("pk").values_list("pk", flat=True)[:BATCH_SIZE]):
        rows.filter(pk__in=keys).order_by().delete()


def delete_rows(model: OwnedModel, workspace_id: int) -> None:
    """Delete with one statement: Django would refuse protected foreign keys, whose rows are deleted too."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL statement_timeout = 0")
        table = connection.ops.quote_name(model._meta.db_table)
        cursor.execute(f"DELETE FROM {table} WHERE workspace_id = %s", [workspace_id])  # noqa: S608  # our own names
