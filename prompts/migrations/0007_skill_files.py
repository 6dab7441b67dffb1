"""Versions name the skill files that they offer, and the ledger has a row for each one that was served."""

from django.db import migrations, models

import core.db.fields
from core.db.online_migrations import AddColumnInPlace


class Migration(migrations.Migration):
    dependencies = [("prompts", "0006_daily_storage_moved")]

    operations = [
        AddColumnInPlace(
            "promptversion",
            "skill_files",
            core.db.fields.CompactJSONField(default=list, db_default=[]),
        ),
        migrations.AddField("ledgerentry", "skill", models.CharField(max_length=255, null=True)),
    ]
