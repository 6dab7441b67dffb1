from django.db import migrations

from core.db.row_level_security import ReplaceWorkspacePolicy

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
    "prompts_ledgerrolloff",
    "prompts_checkpoint",
    "prompts_signingkey",
    "prompts_verificationrun",
    "prompts_release",
    "prompts_releaseitem",
    "prompts_digestreport",
    "prompts_promptsettings",
    "prompts_callcontent",
    "prompts_dailycallstorage",
)


class Migration(migrations.Migration):
    # One table after the other: none is locked while another is waited for.
    atomic = False

    dependencies = [("prompts", "0021_salted_call_content_once")]

    operations = [ReplaceWorkspacePolicy(table) for table in TABLES]
