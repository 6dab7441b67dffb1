"""Build causes record when their build was sent to the workers, so that each workspace sends a few at a time."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("prompts", "0016_current_reports")]

    operations = [migrations.AddField("buildcause", "sent_at", models.DateTimeField(null=True))]
