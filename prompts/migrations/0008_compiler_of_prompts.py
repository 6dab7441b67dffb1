"""For which compiler each prompt was last asked to be built, so that an upgrade is noticed once."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("prompts", "0007_verification_runs")]

    operations = [
        migrations.AddField(
            model_name="agentprompt",
            name="compiler",
            field=models.CharField(blank=True, default="", max_length=20),
            preserve_default=False,
        )
    ]
