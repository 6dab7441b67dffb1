"""Events of a workspace, and the counter that numbers them."""

import django.db.models.deletion
import django.db.models.manager
import django.utils.timezone
from django.db import migrations, models

from core.db.row_level_security import EnableRowLevelSecurity

OPTIONS = {"abstract": False, "default_manager_name": "unscoped"}
MANAGERS = [("unscoped", django.db.models.manager.Manager())]


def build_id():
    return models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    dependencies = [("personas", "0023_key_creator")]

    operations = [
        migrations.CreateModel(
            name="EventCounter",
            fields=[
                ("id", build_id()),
                ("last", models.PositiveBigIntegerField(default=0)),
                (
                    "workspace",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="personas.workspace",
                    ),
                ),
            ],
            options=OPTIONS,
            managers=MANAGERS,
        ),
        migrations.CreateModel(
            name="Event",
            fields=[
                ("id", build_id()),
                ("sequence", models.PositiveBigIntegerField(null=True)),
                ("type", models.CharField(max_length=40)),
                ("data", models.JSONField()),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "workspace",
                    models.ForeignKey(
                        to="personas.workspace",
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        db_index=False,
                    ),
                ),
            ],
            options={
                **OPTIONS,
                "indexes": [
                    models.Index(
                        fields=["workspace", "id"],
                        name="events_to_number",
                        condition=models.Q(("sequence", None)),
                    ),
                    models.Index(fields=["workspace", "at"], name="events_by_time"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=["workspace", "sequence"], name="event_sequence_once")
                ],
            },
            managers=MANAGERS,
        ),
        EnableRowLevelSecurity("personas_eventcounter"),
        EnableRowLevelSecurity("personas_event"),
    ]
