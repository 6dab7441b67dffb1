"""Versions are found by their digest behind row security too, where no function can stand in the way."""

from django.db import migrations, models

from personas.online import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("prompts", "0014_row_security")]

    operations = [
        AddIndexOnline(
            "promptversion",
            models.Index(fields=["workspace", "digest"], name="versions_by_whole_digest"),
        ),
        migrations.RemoveIndex("promptversion", "versions_by_beginning"),
    ]
