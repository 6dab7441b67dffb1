"""A pushed file refers to the API key that pushed it first."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("personas", "0017_key_origin"), ("skills", "0007_copy_agent_sources")]

    operations = [
        migrations.AddField(
            model_name="pushedfile",
            name="pushed_by",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="personas.apikey",
            ),
        ),
    ]
