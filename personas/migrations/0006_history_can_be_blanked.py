"""Erased words leave history too; the rows, their numbers and their authors stay."""

from django.db import migrations

from core.db.erasable import AppendOnlyWithErasure


class Migration(migrations.Migration):
    dependencies = [("personas", "0005_months_of_ledger")]

    operations = [
        AppendOnlyWithErasure(
            "personas_revision",
            kept=["id", "workspace_id", "kind", "object_id", "number", "author_id", "author_label", "at"],
            words=["data"],
            lines={"message": ""},
        ),
        AppendOnlyWithErasure(
            "personas_auditevent",
            kept=[
                *("id", "workspace_id", "verb", "kind", "object_id", "actor_id", "actor_label"),
                *("request_id", "at"),
            ],
            words=["before", "after"],
            lines={"object_label": "[erased]"},
        ),
    ]
