from django.db import migrations

from prompts.ledger.partition_functions import ReplaceLedgerFunctions


class Migration(migrations.Migration):
    dependencies = [("prompts", "0023_ledger_functions")]

    operations = [ReplaceLedgerFunctions()]
