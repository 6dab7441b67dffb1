"""The ledger lies in one table for each month, on PostgreSQL."""

from django.db import migrations

from prompts.ledger_by_month import ByMonth
from prompts.ledger_functions import LedgerFunctions


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("prompts", "0011_versions_by_beginning")]

    operations = [LedgerFunctions(), ByMonth()]
