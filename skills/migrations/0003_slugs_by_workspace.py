"""Sources are asked for by slug with their workspace; the index by slug alone was never read."""

from django.db import migrations, models

from personas.workspaces.models import slug_validator, validate_not_reserved


class Migration(migrations.Migration):
    dependencies = [("skills", "0002_sources_and_files")]

    operations = [
        migrations.AlterField(
            "source",
            "slug",
            models.SlugField(
                max_length=64,
                db_index=False,
                editable=False,
                validators=[slug_validator, validate_not_reserved],
            ),
        ),
    ]
