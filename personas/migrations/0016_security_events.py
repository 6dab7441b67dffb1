"""Security events of user accounts."""

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("personas", "0015_encrypt_second_factors"),
    ]

    operations = [
        migrations.CreateModel(
            name="SecurityEvent",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(max_length=32)),
                ("detail", models.CharField(blank=True, max_length=200)),
                ("actor_label", models.CharField(blank=True, max_length=254)),
                ("network", models.CharField(blank=True, max_length=50)),
                ("user_agent", models.CharField(blank=True, max_length=200)),
                ("count", models.PositiveIntegerField(default=1)),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="security_events",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["user", "-at"], name="security_events_of_user"),
                    models.Index(fields=["at"], name="security_events_by_age"),
                ],
            },
        ),
    ]
