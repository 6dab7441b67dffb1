"""Webhook endpoints, their deliveries and attempts, and the position of the fan-out."""

import django.db.models.deletion
import django.db.models.manager
import django.utils.timezone
from django.db import migrations, models

from core.db.row_level_security import EnableRowLevelSecurity


class Migration(migrations.Migration):
    dependencies = [
        ("personas", "0024_events"),
    ]

    operations = [
        migrations.CreateModel(
            name="WebhookEndpoint",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=80)),
                ("url", models.CharField(max_length=500)),
                ("types", models.JSONField(blank=True, default=list)),
                ("agents", models.JSONField(blank=True, default=list)),
                ("channels", models.JSONField(blank=True, default=list)),
                ("labels", models.JSONField(blank=True, default=list)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("enabled", "Enabled"),
                            ("disabled", "Disabled"),
                            ("gone", "Disabled: the receiver returned 410"),
                            ("failing", "Disabled: deliveries failed for days"),
                        ],
                        default="enabled",
                        editable=False,
                        max_length=10,
                    ),
                ),
                ("revision", models.PositiveIntegerField(default=1, editable=False)),
                ("secret", models.CharField(editable=False, max_length=300)),
                ("previous_secret", models.CharField(blank=True, editable=False, max_length=300)),
                ("previous_ends_at", models.DateTimeField(editable=False, null=True)),
                ("private_key", models.CharField(editable=False, max_length=300)),
                ("created_label", models.CharField(editable=False, max_length=254)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("active_since", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("leased_until", models.DateTimeField(editable=False, null=True)),
                ("served_at", models.DateTimeField(editable=False, null=True)),
                ("held_until", models.DateTimeField(editable=False, null=True)),
                ("failures", models.PositiveIntegerField(default=0, editable=False)),
                ("failing_since", models.DateTimeField(editable=False, null=True)),
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
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="WebhookDelivery",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("pending", "Pending"), ("delivered", "Delivered"), ("failed", "Failed")],
                        default="pending",
                        max_length=10,
                    ),
                ),
                ("attempt_count", models.PositiveSmallIntegerField(default=0)),
                ("due_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "event",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="personas.event"
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
                (
                    "endpoint",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="personas.webhookendpoint",
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
            name="WebhookQueue",
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
            name="WebhookAttempt",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField()),
                ("milliseconds", models.PositiveIntegerField()),
                ("status", models.PositiveSmallIntegerField(null=True)),
                ("error", models.CharField(blank=True, max_length=200)),
                ("response", models.TextField(blank=True)),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="personas.workspace",
                    ),
                ),
                (
                    "delivery",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="attempts",
                        to="personas.webhookdelivery",
                    ),
                ),
            ],
            options={
                "abstract": False,
                "default_manager_name": "unscoped",
                "indexes": [models.Index(fields=["workspace", "at"], name="webhook_attempts_by_time")],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.AddConstraint(
            model_name="webhookendpoint",
            constraint=models.UniqueConstraint(fields=("workspace", "name"), name="webhook_name_once"),
        ),
        migrations.AddIndex(
            model_name="webhookdelivery",
            index=models.Index(
                condition=models.Q(("state", "pending")),
                fields=["workspace", "endpoint", "due_at"],
                name="webhook_deliveries_due",
            ),
        ),
        migrations.AddConstraint(
            model_name="webhookdelivery",
            constraint=models.UniqueConstraint(
                fields=("workspace", "endpoint", "event"), name="webhook_delivery_once"
            ),
        ),
        EnableRowLevelSecurity("personas_webhookendpoint"),
        EnableRowLevelSecurity("personas_webhookqueue"),
        EnableRowLevelSecurity("personas_webhookdelivery"),
        EnableRowLevelSecurity("personas_webhookattempt"),
    ]
