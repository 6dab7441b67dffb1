"""Versions, label moves, the ledger, checkpoints, signing keys and reports are append-only."""

from django.db import migrations

from core.db.append_only import AppendOnly
from core.db.expiry import AppendOnlyWithExpiry
from prompts.evidence.ledger.retention_trigger import AppendOnlyWithRetention


class Migration(migrations.Migration):
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
