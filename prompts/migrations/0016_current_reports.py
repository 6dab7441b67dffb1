"""Prompts record the report of their last build, so that responses contain the warnings of the moment."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("prompts", "0015_prompt_level_settings")]

    operations = [
        migrations.AddField(
            "agentprompt", "report", models.CharField(blank=True, default="", db_default="", max_length=64)
        ),
    ]
