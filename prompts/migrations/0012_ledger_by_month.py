"""The ledger lies in one table for each month, on PostgreSQL."""

from django.db import migrations

from prompts.ledger.partition_functions import CreateLedgerFunctions
from prompts.ledger.partition_migration import PartitionByMonth


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("prompts", "0011_versions_by_beginning")]

    operations = [CreateLedgerFunctions(), PartitionByMonth()]
