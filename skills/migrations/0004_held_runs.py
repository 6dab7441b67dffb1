"""Held refresh runs with their missing files, and sources that allow hard links."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("skills", "0003_slugs_by_workspace")]

    operations = [
        migrations.AddField(
            "source", "allow_hard_links", models.BooleanField(default=False, db_default=False)
        ),
        migrations.AddField("refreshrun", "missing", models.PositiveIntegerField(default=0, db_default=0)),
        migrations.AddField("refreshrun", "missing_paths", models.JSONField(null=True)),
        migrations.AddField("refreshrun", "confirmed_paths", models.JSONField(null=True)),
        migrations.AlterField(
            "refreshrun",
            "status",
            models.CharField(
                max_length=7,
                choices=[
                    ("queued", "Queued"),
                    ("running", "Running"),
                    ("done", "Done"),
                    ("held", "Held"),
                    ("failed", "Failed"),
                    ("lost", "Lost with its worker"),
                ],
                default="queued",
            ),
        ),
    ]
