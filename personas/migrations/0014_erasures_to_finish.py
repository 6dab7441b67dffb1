"""Find the erasures that a worker has to finish."""

from django.db import migrations, models

from core.db.online_migrations import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("personas", "0013_progress_of_erasures")]

    operations = [
        AddIndexOnline(
            "erasure",
            models.Index(
                fields=["rebuilding_since"],
                condition=models.Q(rebuilding_since__isnull=False),
                name="erasures_to_finish",
            ),
        ),
    ]
