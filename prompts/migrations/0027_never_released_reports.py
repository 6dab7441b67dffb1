"""An index to count the bots whose last report matches no version."""

from django.db import migrations, models

from core.db.online_migrations import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("prompts", "0026_report_details")]

    operations = [
        AddIndexOnline(
            "digestreport",
            models.Index(
                condition=models.Q(version=None),
                fields=["workspace", "prompt", "key"],
                name="reports_never_released",
            ),
        ),
    ]
