"""Comments on memories and on lines of versions."""

import django.db.models.deletion
import django.db.models.manager
from django.conf import settings
from django.db import migrations, models

import core.db.fields
from core.db.row_level_security import EnableRowLevelSecurity


class Migration(migrations.Migration):
    dependencies = [
        ("personas", "0026_notifications"),
        ("prompts", "0029_ledger_traceparent"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Comment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("line", models.PositiveIntegerField(null=True)),
                ("author_label", models.CharField(max_length=254)),
                ("text", core.db.fields.ProseField(max_length=4000)),
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
                    "memory",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="personas.memory",
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="prompts.promptversion",
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
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("line", None), ("memory__isnull", False), ("version", None)),
                            models.Q(("line__gte", 1), ("memory", None), ("version__isnull", False)),
                            _connector="OR",
                        ),
                        name="comment_has_one_subject",
                    )
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        EnableRowLevelSecurity("prompts_comment"),
    ]
