"""Workspaces have a release policy for new agents, and can require a second factor."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("personas", "0026_notifications")]

    operations = [
        migrations.AddField(
            model_name="workspace",
            name="default_release_policy",
            field=models.CharField(
                choices=[
                    ("automatic", "Automatic: production follows the latest build"),
                    ("reviewed", "Reviewed: another member approves first"),
                ],
                db_default="automatic",
                default="automatic",
                max_length=10,
            ),
        ),
        migrations.AddField(
            model_name="workspace",
            name="requires_second_factor",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
