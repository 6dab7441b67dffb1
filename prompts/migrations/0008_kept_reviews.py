"""Production needs approvals after a review was lifted, until it has the text of the latest version."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("prompts", "0007_skill_files")]

    operations = [
        migrations.AddField(
            model_name="agentprompt",
            name="is_review_kept",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
