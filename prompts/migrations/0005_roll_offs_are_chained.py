"""What says that ledger rows were let go is chained, as everything else that only grows; blocks by row."""

from django.db import migrations, models

from core.db.append_only import AppendOnly
from prompts.ledger.retention_trigger import AppendOnlyWithRetention, RemoveAppendOnly


class Unguarded(AppendOnlyWithRetention):
    """The ledger's guard set aside: SQLite does not rebuild a table that a trigger names."""

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        super().database_backwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(self, app_label, schema_editor, from_state, to_state):
        super().database_forwards(app_label, schema_editor, from_state, to_state)

    def describe(self):
        return f"Set the guard of {self.table} aside"


def hashed(name, **options):
    field = models.CharField(max_length=64, default="", **options)
    return migrations.AddField("ledgerrolloff", name, field, preserve_default=False)


class Migration(migrations.Migration):
    dependencies = [("prompts", "0004_version_parts")]

    operations = [
        Unguarded("prompts_ledgerentry"),
        RemoveAppendOnly("prompts_ledgerrolloff"),
        hashed("previous_hash", blank=True),
        hashed("hash"),
        AppendOnly("prompts_ledgerrolloff"),
        AppendOnlyWithRetention("prompts_ledgerentry"),
        migrations.AddIndex(
            model_name="ledgerblock",
            index=models.Index(fields=["workspace", "last_id"], name="ledger_blocks_by_row"),
        ),
    ]
