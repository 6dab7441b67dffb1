from django.db import migrations

from core.db.row_level_security import ReplaceWorkspacePolicy

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
    "personas_erasurecounter",
)


class Migration(migrations.Migration):
    # One table after the other: none is locked while another is waited for.
    atomic = False

    dependencies = [("prompts", "0014_row_security"), ("personas", "0020_salted_content_once")]

    operations = [
        ReplaceWorkspacePolicy("personas_workspace", "id"),
        *(ReplaceWorkspacePolicy(table) for table in TABLES),
    ]
