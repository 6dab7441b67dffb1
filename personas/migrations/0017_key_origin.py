"""A rotated key refers to the first key of its chain of rotations."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("personas", "0016_security_events")]

    operations = [
        migrations.AddField(
            model_name="apikey",
            name="origin",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="personas.apikey",
            ),
        ),
    ]
