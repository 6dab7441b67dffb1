"""Reports of bots name the file, reason and session, and how they compare with the released version.

The column is null without a default: otherwise SQLite rebuilds the table, without its triggers.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("prompts", "0025_plain_labels")]

    operations = [migrations.AddField("digestreport", "details", models.JSONField(null=True))]
