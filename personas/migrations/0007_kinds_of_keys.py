"""Keys are a bot's or act for a person; those made so far are bots'."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("personas", "0006_history_can_be_blanked")]

    operations = [
        migrations.AlterModelOptions("apikey", {"default_manager_name": "unscoped", "verbose_name": "key"}),
        migrations.AddField(
            "apikey",
            "kind",
            models.CharField(max_length=5, choices=[("bot", "Bot"), ("admin", "Admin")], default="bot"),
        ),
        migrations.AddConstraint(
            "apikey",
            models.CheckConstraint(condition=Q(kind__in=["bot", "admin"]), name="key_kind_known"),
        ),
        migrations.AddConstraint(
            "apikey",
            models.CheckConstraint(
                condition=~Q(kind="admin") | Q(created_by__isnull=False), name="admin_key_has_its_maker"
            ),
        ),
    ]
