"""A key that was created by the API refers to the key of the request."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("personas", "0022_plain_labels")]

    operations = [
        migrations.AddField(
            model_name="apikey",
            name="creator_key",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="created_keys",
                to="personas.apikey",
            ),
        ),
    ]
