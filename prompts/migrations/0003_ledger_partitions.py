"""On PostgreSQL the ledger has one partition per month."""

from django.db import migrations

from prompts.evidence.ledger.partition_functions import CreateLedgerFunctions
from prompts.evidence.ledger.partition_migration import PartitionByMonth


class Migration(migrations.Migration):
    dependencies = [("prompts", "0002_append_only")]

    operations = [
        CreateLedgerFunctions(),
        PartitionByMonth(),
    ]
