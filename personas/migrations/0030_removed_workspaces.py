"""The rows of a deleted workspace are removed; its own row stays as a tombstone."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("personas", "0029_former_slugs")]

    operations = [
        migrations.AddField(
            model_name="workspace",
            name="removed_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
    ]
