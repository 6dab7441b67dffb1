"""Revisions and audit events are append-only, except for erasures. Erasures are counted by workspace."""

from django.db import migrations

from core.db.append_only import AppendOnlyWithErasure
from core.db.write_counter import CountWrites


class Migration(migrations.Migration):
    dependencies = [("personas", "0002_tables")]

    operations = [
        AppendOnlyWithErasure(
            "personas_revision",
            kept=["id", "workspace_id", "kind", "object_id", "number", "author_id", "author_label", "at"],
            json_columns=["data"],
            text_columns={"message": ""},
        ),
        AppendOnlyWithErasure(
            "personas_auditevent",
            kept=[
                *("id", "workspace_id", "verb", "kind", "object_id", "actor_id", "actor_label"),
                *("request_id", "at"),
            ],
            json_columns=["before", "after"],
            text_columns={"object_label": "[erased]"},
        ),
        CountWrites("personas_erasure", "personas_erasurecounter"),
    ]
