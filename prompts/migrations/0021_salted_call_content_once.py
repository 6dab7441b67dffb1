"""Equal data is stored once per workspace, until it is erased."""

from django.db import migrations, models

from core.db.online_migrations import AddUniqueOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("prompts", "0020_salted_call_contents")]

    operations = [
        AddUniqueOnline(
            model_name="callcontent",
            constraint=models.UniqueConstraint(
                condition=models.Q(("plain_digest__isnull", False)),
                fields=("workspace", "plain_digest"),
                name="salted_call_content_once",
            ),
        ),
    ]
