"""What bots say they have really used; such rows only grow."""

import django.db.models.deletion
import django.db.models.manager
from django.db import migrations, models

from core.db.append_only import AppendOnly


def link(to, **options):
    return models.ForeignKey(to=to, on_delete=django.db.models.deletion.PROTECT, related_name="+", **options)


class Migration(migrations.Migration):
    dependencies = [("prompts", "0009_versions_take_less_room")]

    operations = [
        migrations.CreateModel(
            name="DigestReport",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("reporter_label", models.CharField(max_length=254)),
                ("digest", models.CharField(max_length=64)),
                ("ledger_id", models.BigIntegerField(null=True)),
                ("request_id", models.CharField(blank=True, max_length=64)),
                ("is_last_handed", models.BooleanField()),
                ("at", models.DateTimeField(auto_now_add=True)),
                ("key", link("personas.apikey", db_index=False)),
                ("prompt", link("prompts.agentprompt", db_index=False)),
                ("version", link("prompts.promptversion", db_index=False, null=True)),
                ("workspace", link("personas.workspace")),
            ],
            options={
                "abstract": False,
                "default_manager_name": "unscoped",
                "indexes": [models.Index(fields=["prompt", "-at"], name="reports_by_prompt")],
            },
            managers=[("unscoped", django.db.models.manager.Manager())],
        ),
        AppendOnly("prompts_digestreport"),
    ]
