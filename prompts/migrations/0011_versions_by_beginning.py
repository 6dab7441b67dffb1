"""Versions are found by the beginning of their digest."""

from django.db import migrations, models
from django.db.models.functions import Substr


class Migration(migrations.Migration):
    dependencies = [("prompts", "0010_reports")]

    operations = [
        migrations.AddIndex(
            "promptversion", models.Index(Substr("digest", 1, 12), name="versions_by_beginning")
        ),
    ]
