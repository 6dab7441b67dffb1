"""The model of the bytes that a workspace stores per day is part of the app personas. Its table stays."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("prompts", "0005_removed_workspaces"), ("personas", "0006_limits")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.DeleteModel(name="DailyCallStorage")]
        )
    ]
