"""Limits per person: whom a workspace counts for, counters of daily limits, and a limit per user.

The model of the bytes that a workspace stores per day moves from the app prompts to this one. Its table stays.
"""

import django.db.models.deletion
import django.db.models.manager
from django.conf import settings
from django.db import migrations, models

ID_FIELD = models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    dependencies = [("personas", "0005_encrypt_second_factors")]

    operations = [
        migrations.AddField(
            model_name="user",
            name="workspace_limit",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="workspace",
            name="counted_for",
            field=models.ForeignKey(
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="counted_workspaces",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.CreateModel(
            name="DailyUsage",
            fields=[
                ("id", ID_FIELD),
                ("kind", models.CharField(max_length=32)),
                ("subject", models.CharField(max_length=64)),
                ("day", models.DateField()),
                ("amount", models.PositiveBigIntegerField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("kind", "subject", "day"), name="daily_usage_once_a_day")
                ],
            },
        ),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="DailyStorage",
                    fields=[
                        ("id", ID_FIELD),
                        ("day", models.DateField()),
                        ("size", models.PositiveBigIntegerField()),
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
                        "db_table": "prompts_dailycallstorage",
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("workspace", "day"), name="call_storage_once_a_day"
                            )
                        ],
                    },
                    managers=[("unscoped", django.db.models.manager.Manager())],
                ),
            ]
        ),
    ]
