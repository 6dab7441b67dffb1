"""Each workspace counts for the owner who joined it first, who is its creator unless that user has left."""

from typing import Any

from django.db import migrations

from core.db.online_migrations import RunInBatches


def list_uncounted_workspaces(apps: Any, size: int) -> list[int]:
    owners = apps.get_model("personas", "Membership")._base_manager.filter(role="owner")
    rows = apps.get_model("personas", "Workspace").objects.filter(counted_for=None, removed_at=None)
    owned = rows.filter(pk__in=owners.values("workspace")).order_by("pk")
    return list(owned.values_list("pk", flat=True)[:size])


def count_for_first_owner(apps: Any, keys: list[int]) -> None:
    owners = apps.get_model("personas", "Membership")._base_manager.filter(role="owner")
    for workspace in apps.get_model("personas", "Workspace").objects.filter(pk__in=keys):
        first = owners.filter(workspace=workspace).order_by("joined_at", "pk").first()
        workspace.counted_for_id = first.user_id
        workspace.save(update_fields=["counted_for"])


class Migration(migrations.Migration):
    # RunInBatches commits after each batch.
    atomic = False

    dependencies = [("personas", "0006_limits")]

    operations = [RunInBatches(list_uncounted_workspaces, count_for_first_owner)]
