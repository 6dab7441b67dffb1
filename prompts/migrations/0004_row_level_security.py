"""Row-level security for the tables with a workspace. A later table gets it in the migration that creates it."""

from django.db import migrations

from core.db.row_level_security import EnableRowLevelSecurity

TABLES = (
    "prompts_agentprompt",
    "prompts_buildcause",
    "prompts_promptversion",
    "prompts_versionpart",
    "prompts_promptlabel",
    "prompts_labelmove",
    "prompts_labelrule",
    "prompts_ledgerentry",
    "prompts_ledgerblock",
    "prompts_ledgerexpiry",
    "prompts_checkpoint",
    "prompts_signingkey",
    "prompts_verificationrun",
    "prompts_release",
    "prompts_releaseitem",
    "prompts_digestreport",
    "prompts_promptsettings",
    "prompts_callcontent",
    "prompts_releasecomment",
    "prompts_releasereviewer",
    "prompts_comment",
)


class Migration(migrations.Migration):
    dependencies = [("prompts", "0003_ledger_partitions")]

    operations = [
        *(EnableRowLevelSecurity(table) for table in TABLES),
    ]
