"""Each workspace counts its erasures, so that a fetch compares one number however many there are."""

import django.db.models.deletion
from django.db import migrations, models

from core.db.row_level_security import EnableRowLevelSecurity
from core.db.write_counter import CountWrites


class Migration(migrations.Migration):
    dependencies = [("personas", "0017_key_origin")]

    operations = [
        migrations.CreateModel(
            name="ErasureCounter",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "workspace",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="personas.workspace",
                    ),
                ),
                ("number", models.PositiveBigIntegerField(default=0)),
            ],
            managers=[("unscoped", models.Manager())],
            options={"abstract": False, "default_manager_name": "unscoped"},
        ),
        EnableRowLevelSecurity("personas_erasurecounter"),
        CountWrites("personas_erasure", "personas_erasurecounter"),
    ]
