"""Long values of calls are stored once per workspace, and the bytes that calls store are counted per day."""

import django.db.models.deletion
import django.db.models.manager
from django.db import migrations, models

from core.db.row_level_security import EnableRowLevelSecurity

OPTIONS = {"abstract": False, "default_manager_name": "unscoped"}
MANAGERS = [("unscoped", django.db.models.manager.Manager())]


def build_id():
    return models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


def build_workspace_link():
    return models.ForeignKey(
        to="personas.workspace",
        on_delete=django.db.models.deletion.PROTECT,
        related_name="+",
        db_index=False,
    )


class Migration(migrations.Migration):
    dependencies = [("personas", "0018_erasure_counter"), ("prompts", "0017_build_cause_sent_at")]

    operations = [
        migrations.CreateModel(
            name="CallContent",
            fields=[
                ("id", build_id()),
                ("digest", models.CharField(max_length=64)),
                ("size", models.PositiveIntegerField()),
                ("data", models.BinaryField(null=True)),
                ("erased_at", models.DateTimeField(editable=False, null=True)),
                ("last_used_on", models.DateField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("workspace", build_workspace_link()),
            ],
            options={
                **OPTIONS,
                "indexes": [models.Index(fields=["workspace", "last_used_on"], name="call_contents_by_use")],
                "constraints": [
                    models.UniqueConstraint(fields=["workspace", "digest"], name="call_content_once")
                ],
            },
            managers=MANAGERS,
        ),
        migrations.CreateModel(
            name="DailyCallStorage",
            fields=[
                ("id", build_id()),
                ("day", models.DateField()),
                ("size", models.PositiveBigIntegerField()),
                ("workspace", build_workspace_link()),
            ],
            options={
                **OPTIONS,
                "constraints": [
                    models.UniqueConstraint(fields=["workspace", "day"], name="call_storage_once_a_day")
                ],
            },
            managers=MANAGERS,
        ),
        EnableRowLevelSecurity("prompts_callcontent"),
        EnableRowLevelSecurity("prompts_dailycallstorage"),
    ]
