"""An agent reads several sources; a source has a location; settings for context files and skills."""

import django.db.models.manager
from django.db import migrations, models

from core.db.fields import LineField
from core.db.row_level_security import EnableRowLevelSecurity


def build_list_field() -> models.JSONField:
    return models.JSONField(
        blank=True, db_default=models.Value([], output_field=models.JSONField()), default=list
    )


class Migration(migrations.Migration):
    dependencies = [
        ("personas", "0010_slugs_by_workspace"),
        ("skills", "0005_held_status"),
    ]

    operations = [
        migrations.AddField(
            "source", "location", LineField(blank=True, db_default="", default="", max_length=1000)
        ),
        migrations.AddField(
            "agentcontext", "has_context_files", models.BooleanField(db_default=True, default=True)
        ),
        migrations.AddField("agentcontext", "has_skills", models.BooleanField(db_default=True, default=True)),
        migrations.AddField("agentcontext", "file_names", build_list_field()),
        migrations.AddField("agentcontext", "extra_skill_folders", build_list_field()),
        migrations.AddField(
            "agentcontext",
            "pulled_skills_folder",
            LineField(blank=True, db_default="", default="", max_length=1000),
        ),
        migrations.CreateModel(
            name="AgentSource",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "scope",
                    models.CharField(
                        choices=[
                            ("both", "Project and home directory"),
                            ("project", "Project"),
                            ("home", "Home directory"),
                        ],
                        default="both",
                        max_length=7,
                    ),
                ),
                ("location", LineField(blank=True, max_length=1000)),
                ("position", models.PositiveSmallIntegerField(default=0)),
                (
                    "context",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="uses", to="skills.agentcontext"
                    ),
                ),
                (
                    "source",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="agent_uses", to="skills.source"
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="personas.workspace"),
                ),
            ],
            options={
                "ordering": ["position", "pk"],
                "abstract": False,
                "default_manager_name": "unscoped",
                "constraints": [
                    models.UniqueConstraint(fields=("context", "source"), name="agent_source_once"),
                    models.CheckConstraint(
                        condition=models.Q(("scope__in", ["both", "project", "home"])),
                        name="agent_source_scope_known",
                    ),
                ],
            },
            managers=[("unscoped", django.db.models.manager.Manager())],
        ),
        EnableRowLevelSecurity("skills_agentsource"),
    ]
