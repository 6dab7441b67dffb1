"""From a record or file to the versions that hold it; what is noted stays."""

import django.db.models.deletion
from django.db import migrations, models

from core.db.append_only import AppendOnly


class Migration(migrations.Migration):
    dependencies = [("prompts", "0003_ledger_rolls_off")]

    operations = [
        migrations.CreateModel(
            name="VersionPart",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(max_length=20)),
                ("object_id", models.BigIntegerField()),
                ("revision", models.PositiveIntegerField(null=True)),
                (
                    "prompt",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="prompts.agentprompt",
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="prompts.promptversion",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="personas.workspace",
                    ),
                ),
            ],
            options={
                "abstract": False,
                "default_manager_name": "unscoped",
                "indexes": [
                    models.Index(
                        fields=["workspace", "kind", "object_id", "prompt", "version"],
                        name="parts_by_record",
                    )
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        AppendOnly("prompts_versionpart"),
    ]
