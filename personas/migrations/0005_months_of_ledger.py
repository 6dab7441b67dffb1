"""How long a workspace keeps the rows of its ledger, half a year at least."""

import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("personas", "0004_keys_and_erasures")]

    operations = [
        migrations.AddField(
            model_name="workspace",
            name="ledger_months",
            field=models.PositiveSmallIntegerField(
                default=24, validators=[django.core.validators.MinValueValidator(6)]
            ),
        ),
        migrations.AddConstraint(
            model_name="workspace",
            constraint=models.CheckConstraint(
                condition=models.Q(("ledger_months__gte", 6)), name="ledger_kept_half_a_year_at_least"
            ),
        ),
    ]
