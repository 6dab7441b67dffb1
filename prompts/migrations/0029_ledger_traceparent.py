"""Ledger rows keep the header traceparent of the request.

The column is null without a default: otherwise SQLite rebuilds the table, without its triggers. PostgreSQL adds
it without reading rows.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("prompts", "0028_release_discussion")]

    operations = [
        migrations.AddField("ledgerentry", "traceparent", models.CharField(max_length=55, null=True)),
    ]
