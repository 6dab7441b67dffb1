"""A tool can call an agent of the same workspace."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("personas", "0011_directories_and_capabilities")]

    operations = [
        migrations.AddField(
            "tool",
            "agent",
            models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="as_tools",
                to="personas.agent",
            ),
        ),
    ]
