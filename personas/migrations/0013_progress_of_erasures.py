"""Erasures of many prompts are finished by a worker."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("personas", "0012_tools_that_call_agents")]

    operations = [migrations.AddField("erasure", "rebuilding_since", models.DateTimeField(null=True))]
