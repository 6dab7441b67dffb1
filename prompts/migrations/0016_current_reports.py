"""Prompts record the report of their last build, so that responses contain the warnings of the moment."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("prompts", "0014_row_security")]

    operations = [
        migrations.AddField("agentprompt", "report", models.CharField(blank=True, default="", max_length=64)),
    ]
