"""On PostgreSQL the ledger has one partition per month."""

from django.db import migrations

from prompts.ledger.partition_functions import CreateLedgerFunctions
from prompts.ledger.partition_migration import PartitionByMonth


class Migration(migrations.Migration):
    replaces = [
        ("prompts", "0012_ledger_by_month"),
        ("prompts", "0023_ledger_functions"),
        ("prompts", "0024_ledger_function_for_citus"),
    ]

    dependencies = [("prompts", "0002_append_only")]

    operations = [
        CreateLedgerFunctions(),
        PartitionByMonth(),
    ]
