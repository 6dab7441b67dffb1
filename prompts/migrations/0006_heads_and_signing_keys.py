"""Checkpoints bring the ends of the chains they sum up; the keys that signed them are kept."""

import django.db.models.deletion
import django.db.models.manager
from django.db import migrations, models

from core.db.append_only import AppendOnly
from prompts.ledger.retention_trigger import RemoveAppendOnly


class Migration(migrations.Migration):
    dependencies = [("personas", "0006_history_can_be_blanked"), ("prompts", "0005_roll_offs_are_chained")]

    operations = [
        RemoveAppendOnly("prompts_checkpoint"),
        migrations.AddField("checkpoint", "heads", models.JSONField(default=dict), preserve_default=False),
        AppendOnly("prompts_checkpoint"),
        migrations.CreateModel(
            name="SigningKey",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key_id", models.CharField(max_length=16)),
                ("public_key", models.CharField(max_length=200)),
                ("first_used_at", models.DateTimeField()),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="personas.workspace",
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
                "abstract": False,
                "default_manager_name": "unscoped",
                "constraints": [
                    models.UniqueConstraint(fields=("workspace", "key_id"), name="signing_key_once")
                ],
            },
            managers=[("unscoped", django.db.models.manager.Manager())],
        ),
        AppendOnly("prompts_signingkey"),
    ]
