"""Copy the one source of each agent to the new table. The old column stays in the database for one release."""

from typing import Any

from django.db import migrations

from core.db.online_migrations import RunInBatches


def list_contexts_to_copy(apps: Any, size: int) -> list[int]:
    contexts = apps.get_model("skills", "AgentContext").unscoped
    rows = contexts.filter(source__isnull=False, uses=None).order_by("pk")
    return list(rows.values_list("pk", flat=True)[:size])


def copy_sources(apps: Any, keys: list[int]) -> None:
    contexts, uses = (apps.get_model("skills", name).unscoped for name in ("AgentContext", "AgentSource"))
    rows = contexts.filter(pk__in=keys).values_list("pk", "workspace_id", "source_id")
    uses.bulk_create(
        [
            uses.model(context_id=pk, workspace_id=workspace, source_id=source)
            for pk, workspace, source in rows
        ]
    )


class Migration(migrations.Migration):
    # RunInBatches commits after each batch.
    atomic = False

    dependencies = [("skills", "0006_agent_sources")]

    operations = [
        RunInBatches(list_contexts_to_copy, copy_sources),
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.RemoveField("agentcontext", "source")]
        ),
    ]
