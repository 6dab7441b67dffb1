"""Drafts that members keep; they hold unsaved words and go when those are saved."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("personas", "0008_kept_answers")]

    operations = [
        migrations.CreateModel(
            "KeptDraft",
            [
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("family", models.CharField(max_length=40)),
                ("key", models.CharField(blank=True, max_length=80)),
                ("values", models.JSONField(default=dict)),
                ("base_revision", models.PositiveIntegerField(default=0)),
                ("updated_at", models.DateTimeField()),
                (
                    "agent",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="personas.agent",
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
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
                    models.UniqueConstraint(
                        fields=["workspace", "person", "family", "key"],
                        name="one_draft_per_member_and_record",
                    )
                ],
            },
        ),
    ]
