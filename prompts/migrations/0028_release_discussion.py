"""Reviewers asked by name, and comments on releases."""

import django.db.models.deletion
import django.db.models.manager
from django.conf import settings
from django.db import migrations, models

import core.db.fields
from core.db.row_level_security import EnableRowLevelSecurity


class Migration(migrations.Migration):
    dependencies = [
        ("personas", "0026_notifications"),
        ("prompts", "0027_never_released_reports"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="ReleaseComment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("author_label", models.CharField(max_length=254)),
                ("text", core.db.fields.ProseField(max_length=4000)),
                ("is_change_request", models.BooleanField(default=False)),
                ("at", models.DateTimeField(auto_now_add=True)),
                (
                    "author",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "release",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="comments",
                        to="prompts.release",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="personas.workspace"
                    ),
                ),
            ],
            options={
                "abstract": False,
                "default_manager_name": "unscoped",
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="ReleaseReviewer",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("requested_label", models.CharField(max_length=254)),
                ("requested_at", models.DateTimeField(auto_now_add=True)),
                (
                    "release",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reviewers",
                        to="prompts.release",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
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
            options={
                "abstract": False,
                "default_manager_name": "unscoped",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "release", "user"), name="release_reviewer_once"
                    )
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        EnableRowLevelSecurity("prompts_releasecomment"),
        EnableRowLevelSecurity("prompts_releasereviewer"),
    ]
