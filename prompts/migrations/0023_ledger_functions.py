from django.db import migrations

from prompts.ledger.partition_functions import ReplaceLedgerFunctions


class Migration(migrations.Migration):
    dependencies = [("prompts", "0022_workspace_policies")]

    operations = [ReplaceLedgerFunctions()]
