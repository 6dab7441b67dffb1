"""Owners can delete a workspace."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("personas", "0027_workspace_settings")]

    operations = [
        migrations.AddField(
            model_name="workspace",
            name="deleted_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
    ]
