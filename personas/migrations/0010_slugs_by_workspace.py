"""Slugs are asked for with their workspace; the indexes by slug alone were written to and never read."""

from typing import Any

from django.db import migrations, models

from personas.workspaces.models import slug_validator, validate_not_reserved

SLUG: dict[str, Any] = {
    "max_length": 64,
    "db_index": False,
    "validators": [slug_validator, validate_not_reserved],
}


class Migration(migrations.Migration):
    dependencies = [("personas", "0009_kept_drafts")]

    operations = [
        migrations.AlterField("agent", "slug", models.SlugField(**SLUG)),
        migrations.AlterField("channel", "slug", models.SlugField(**SLUG)),
        migrations.AlterField("identity", "slug", models.SlugField(editable=False, **SLUG)),
        migrations.AlterField("soul", "slug", models.SlugField(editable=False, **SLUG)),
        migrations.AlterField("userprofile", "slug", models.SlugField(editable=False, **SLUG)),
    ]
