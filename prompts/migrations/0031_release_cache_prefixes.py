"""Releases store the cache prefixes of their changes: after an erasure they cannot be computed any more.

The column is null: they are not known for releases of earlier versions of the product.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("prompts", "0030_comments")]

    operations = [migrations.AddField("release", "cache_prefixes", models.JSONField(null=True))]
