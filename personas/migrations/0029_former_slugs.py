"""The slug of a workspace can be changed. URLs with the slugs that it had before are redirected."""

from django.db import migrations

import core.db.line_lists


class Migration(migrations.Migration):
    dependencies = [("personas", "0028_deleted_workspaces")]

    operations = [
        migrations.AddField(
            model_name="workspace",
            name="former_slugs",
            field=core.db.line_lists.LineListField(blank=True, db_default="", default=list, editable=False),
        ),
    ]
