"""Versions, label moves, ledger blocks, roll-offs and checkpoints only grow."""

from django.db import migrations

from core.db.append_only import AppendOnly


class Migration(migrations.Migration):
    dependencies = [("prompts", "0001_versions_labels_ledger"), ("personas", "0004_keys_and_erasures")]

    operations = [
        AppendOnly("prompts_promptversion"),
        AppendOnly("prompts_labelmove"),
        AppendOnly("prompts_ledgerentry"),
        AppendOnly("prompts_ledgerblock"),
        AppendOnly("prompts_ledgerrolloff"),
        AppendOnly("prompts_checkpoint"),
    ]
