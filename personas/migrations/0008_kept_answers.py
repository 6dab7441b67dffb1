"""Answers under an Idempotency-Key, kept for a day."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("personas", "0007_kinds_of_keys")]

    operations = [
        migrations.CreateModel(
            "KeptAnswer",
            [
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("route", models.CharField(max_length=200)),
                ("name", models.CharField(max_length=255)),
                ("body_digest", models.CharField(max_length=64)),
                ("status", models.PositiveSmallIntegerField(default=0)),
                ("headers", models.JSONField(default=dict)),
                ("body", models.BinaryField(default=bytes)),
                ("at", models.DateTimeField()),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="personas.workspace"
                    ),
                ),
            ],
            managers=[("unscoped", models.Manager())],
            options={
                "abstract": False,
                "default_manager_name": "unscoped",
                "constraints": [
                    models.UniqueConstraint(fields=["workspace", "route", "name"], name="answer_kept_once")
                ],
                "indexes": [models.Index(fields=["at"], name="answers_by_age")],
            },
        ),
    ]
