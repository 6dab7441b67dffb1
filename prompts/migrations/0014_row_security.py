from django.db import migrations

from core.db.row_level_security import EnableRowLevelSecurity

# Every table of a model with a workspace. A later one gets its own step in the migration that makes it.
TABLES = (
    "personas_channel",
    "personas_userprofile",
    "personas_tool",
    "personas_identity",
    "personas_soul",
    "personas_agent",
    "personas_agenttool",
    "personas_agentchannel",
    "personas_content",
    "personas_keptdraft",
    "personas_erasure",
    "personas_revision",
    "personas_auditevent",
    "personas_keptanswer",
    "personas_apikey",
    "personas_membership",
    "personas_invitation",
    "personas_memory",
    "personas_responsibility",
    "personas_task",
    "personas_taskstep",
    "skills_sourcegrant",
    "skills_source",
    "skills_agentcontext",
    "skills_pushedfile",
    "skills_refreshrun",
    "skills_contextfile",
    "skills_filerevision",
    "skills_waiver",
    "skills_fileagent",
    "skills_ruleset",
    "skills_skill",
    "skills_skilllink",
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
)


class Migration(migrations.Migration):
    # One table after the other: none is locked while another is waited for.
    atomic = False

    dependencies = [
        ("personas", "0010_slugs_by_workspace"),
        ("skills", "0003_slugs_by_workspace"),
        ("prompts", "0013_led_by_workspace"),
    ]

    operations = [
        EnableRowLevelSecurity("personas_workspace", "id"),
        *(EnableRowLevelSecurity(table) for table in TABLES),
    ]
