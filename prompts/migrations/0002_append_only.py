"""Versions, label moves, the ledger, checkpoints, signing keys and reports are append-only."""

from django.db import migrations

from core.db.append_only import AppendOnly
from core.db.expiry import AppendOnlyWithExpiry
from prompts.ledger.retention_trigger import AppendOnlyWithRetention


class Migration(migrations.Migration):
    replaces = [
        ("prompts", "0002_history_only_grows"),
        ("prompts", "0004_version_parts"),
        ("prompts", "0005_expiries_are_chained"),
        ("prompts", "0006_heads_and_signing_keys"),
        ("prompts", "0010_reports"),
        ("prompts", "0019_reports_expire"),
    ]

    dependencies = [("prompts", "0001_tables")]

    operations = [
        AppendOnly("prompts_promptversion"),
        AppendOnly("prompts_versionpart"),
        AppendOnly("prompts_labelmove"),
        AppendOnly("prompts_ledgerblock"),
        AppendOnly("prompts_ledgerexpiry"),
        AppendOnly("prompts_checkpoint"),
        AppendOnly("prompts_signingkey"),
        AppendOnlyWithExpiry("prompts_digestreport", days=30),
        AppendOnlyWithRetention("prompts_ledgerentry"),
    ]
