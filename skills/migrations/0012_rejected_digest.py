"""Add the digest of the content that a user reverted."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("skills", "0011_plain_labels")]

    operations = [
        migrations.AddField(
            model_name="contextfile",
            name="rejected_digest",
            field=models.CharField(blank=True, db_default="", default="", max_length=64),
        ),
    ]
