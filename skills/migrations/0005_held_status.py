"""The status of a refresh run may be "held". A migration of its own, because it runs without a transaction."""

from django.db import migrations, models

from core.db.online_migrations import AddCheckOnline

STATUSES = ["queued", "running", "done", "held", "failed", "lost"]


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("skills", "0004_held_runs")]

    operations = [
        migrations.RemoveConstraint("refreshrun", "run_status_known"),
        AddCheckOnline(
            "refreshrun",
            models.CheckConstraint(condition=models.Q(status__in=STATUSES), name="run_status_known"),
        ),
    ]
