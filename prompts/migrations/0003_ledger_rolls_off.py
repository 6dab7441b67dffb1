"""Ledger rows wait for no other row's lock, are found in their order, and may go once rolled off."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from prompts.ledger.retention_trigger import AppendOnlyWithRetention, RemoveAppendOnly


def free(field, to, **options):
    """A link that the database does not check, and so does not lock."""
    link = models.ForeignKey(
        to=to,
        on_delete=django.db.models.deletion.PROTECT,
        related_name="+",
        db_constraint=False,
        **options,
    )
    return migrations.AlterField(model_name="ledgerentry", name=field, field=link)


class Migration(migrations.Migration):
    dependencies = [
        ("personas", "0005_months_of_ledger"),
        ("prompts", "0002_history_only_grows"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        RemoveAppendOnly("prompts_ledgerentry"),
        free("workspace", "personas.workspace", db_index=False),
        free("key", "personas.apikey", null=True, db_index=False),
        free("user", settings.AUTH_USER_MODEL, null=True, db_index=False),
        free("prompt", "prompts.agentprompt", db_index=False),
        free("version", "prompts.promptversion"),
        migrations.AddIndex(
            model_name="ledgerentry",
            index=models.Index(fields=["workspace", "id"], name="ledger_in_order"),
        ),
        AppendOnlyWithRetention("prompts_ledgerentry"),
    ]
