from django.db import migrations

from core.db.fields import LineField
from core.db.line_lists import LineListField


class Migration(migrations.Migration):
    dependencies = [("personas", "0010_slugs_by_workspace")]

    operations = [
        migrations.AddField("agent", "capabilities", LineListField(blank=True, null=True)),
        migrations.AddField("agent", "directories", LineListField(blank=True, db_default="", default=list)),
        *(
            migrations.AddField(
                "agent",
                f"documentation_{name}",
                LineField(blank=True, db_default="", default="", max_length=1000),
            )
            for name in ("main", "additional", "examples")
        ),
    ]
