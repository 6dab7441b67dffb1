"""Notifications of members, their preferences, and the user who caused an event."""

import django.db.models.deletion
import django.db.models.manager
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

from core.db.row_level_security import EnableRowLevelSecurity


class Migration(migrations.Migration):
    dependencies = [
        ("personas", "0025_webhooks"),
    ]

    operations = [
        migrations.AddField(
            model_name="event",
            name="actor",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="membership",
            name="unread_count",
            field=models.PositiveIntegerField(db_default=0, default=0, editable=False),
        ),
        migrations.CreateModel(
            name="NotificationQueue",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("position", models.PositiveBigIntegerField(default=0)),
                (
                    "workspace",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="personas.workspace"
                    ),
                ),
            ],
            options={
                "abstract": False,
                "default_manager_name": "unscoped",
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="Notification",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("review_requested", "Releases that need a review"),
                            ("release_updated", "Decisions about your releases and changes"),
                            ("commented", "Comments on your releases, changes and memories"),
                            ("memory_proposed", "Memories that wait for approval"),
                            ("file_waiting", "Context files that wait in the inbox"),
                            ("build_failed", "Failed builds"),
                            ("key_expiring", "API keys that expire soon"),
                            ("webhook_disabled", "Disabled webhook endpoints"),
                            ("chain_broken", "Failed integrity checks"),
                        ],
                        max_length=20,
                    ),
                ),
                ("count", models.PositiveIntegerField(default=1)),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                ("read_at", models.DateTimeField(null=True)),
                ("is_email", models.BooleanField(default=False)),
                ("emailed_at", models.DateTimeField(null=True)),
                (
                    "event",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="personas.event"
                    ),
                ),
                (
                    "member",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notifications",
                        to="personas.membership",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="personas.workspace",
                    ),
                ),
            ],
            options={
                "abstract": False,
                "default_manager_name": "unscoped",
                "indexes": [
                    models.Index(fields=["workspace", "member", "-at"], name="notifications_of_member"),
                    models.Index(
                        condition=models.Q(("read_at", None)),
                        fields=["workspace", "member", "kind"],
                        name="notifications_unread",
                    ),
                    models.Index(
                        condition=models.Q(("emailed_at", None), ("is_email", True), ("read_at", None)),
                        fields=["workspace", "member", "at"],
                        name="notifications_to_email",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("workspace", "member", "event"), name="notification_once")
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="NotificationPreference",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("review_requested", "Releases that need a review"),
                            ("release_updated", "Decisions about your releases and changes"),
                            ("commented", "Comments on your releases, changes and memories"),
                            ("memory_proposed", "Memories that wait for approval"),
                            ("file_waiting", "Context files that wait in the inbox"),
                            ("build_failed", "Failed builds"),
                            ("key_expiring", "API keys that expire soon"),
                            ("webhook_disabled", "Disabled webhook endpoints"),
                            ("chain_broken", "Failed integrity checks"),
                        ],
                        max_length=20,
                    ),
                ),
                (
                    "delivery",
                    models.CharField(
                        choices=[
                            ("app", "In the app"),
                            ("email", "In the app and by email"),
                            ("none", "Off"),
                        ],
                        max_length=5,
                    ),
                ),
                (
                    "member",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="personas.membership",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="personas.workspace",
                    ),
                ),
            ],
            options={
                "abstract": False,
                "default_manager_name": "unscoped",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "member", "kind"), name="notification_preference_once"
                    )
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        EnableRowLevelSecurity("personas_notificationqueue"),
        EnableRowLevelSecurity("personas_notification"),
        EnableRowLevelSecurity("personas_notificationpreference"),
    ]
