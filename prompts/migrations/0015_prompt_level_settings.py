"""Settings of single prompts (agent and channel), sample data and limits.

The table has at most one row per agent, channel and prompt, so its unique indexes are built at once.
"""

from django.db import migrations, models
from django.db.models import Q
from django.db.models.deletion import PROTECT

from core.db.fields import ProseField
from core.db.line_lists import LineListField

MODEL = "promptsettings"
UNIQUE_LEVELS = {
    "settings_once_per_agent": (["agent"], Q(channel=None)),
    "settings_once_per_channel": (["channel"], Q(agent=None)),
    "settings_once_per_prompt": (["agent", "channel"], Q(agent__isnull=False, channel__isnull=False)),
}


class Migration(migrations.Migration):
    dependencies = [("personas", "0011_directories_and_capabilities"), ("prompts", "0014_row_security")]

    operations = [
        *(
            migrations.AddField(
                MODEL, name, ProseField(blank=True, default="", db_default="", max_length=size)
            )
            for name, size in (("signature", 4000), ("sample_data", 60000))
        ),
        migrations.AddField(MODEL, "hidden", LineListField(blank=True, null=True)),
        *(
            migrations.AddField(MODEL, name, models.PositiveIntegerField(blank=True, null=True))
            for name in ("list_sample", "string_truncate", "per_file", "all_files")
        ),
        migrations.AddField(MODEL, "omit_reference", models.BooleanField(blank=True, null=True)),
        migrations.AddField(MODEL, "section_limits", models.JSONField(blank=True, null=True)),
        *(
            migrations.AddConstraint(MODEL, models.UniqueConstraint(fields=fields, condition=rows, name=name))
            for name, (fields, rows) in UNIQUE_LEVELS.items()
        ),
        *(
            migrations.AlterField(
                MODEL,
                name,
                models.ForeignKey(
                    f"personas.{name}", PROTECT, blank=True, null=True, related_name="prompt_settings"
                ),
            )
            for name in ("agent", "channel")
        ),
        migrations.RemoveConstraint(MODEL, "settings_of_one_level"),
    ]
