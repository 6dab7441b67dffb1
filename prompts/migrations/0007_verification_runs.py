"""Looks at the whole record that a person asked for, with what they found."""

import django.db.models.deletion
import django.db.models.manager
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("prompts", "0006_heads_and_signing_keys")]

    operations = [
        migrations.CreateModel(
            name="VerificationRun",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("queued", "Waiting for a worker"),
                            ("running", "Running"),
                            ("done", "Done"),
                            ("failed", "Not finished"),
                        ],
                        default="queued",
                        max_length=7,
                    ),
                ),
                ("asked_label", models.CharField(max_length=254)),
                ("asked_at", models.DateTimeField(auto_now_add=True)),
                ("started_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("result", models.JSONField(default=dict)),
                ("problem", models.CharField(blank=True, max_length=300)),
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
                    models.UniqueConstraint(
                        condition=Q(("state__in", ["queued", "running"])),
                        fields=("workspace",),
                        name="one_look_at_a_time",
                    )
                ],
            },
            managers=[("unscoped", django.db.models.manager.Manager())],
        ),
    ]
