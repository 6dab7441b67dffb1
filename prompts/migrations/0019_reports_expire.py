"""Reports of bots can be deleted after 30 days."""

from django.db import migrations

from core.db.expiry import AppendOnlyWithExpiry


class Migration(migrations.Migration):
    dependencies = [("prompts", "0018_call_contents")]

    operations = [AppendOnlyWithExpiry("prompts_digestreport", days=30)]
