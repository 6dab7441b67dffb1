"""Row-level security for the tables with a workspace. A later table gets it in the migration that creates it."""

from django.db import migrations

from core.db.row_level_security import EnableRowLevelSecurity

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
    "personas_formdraft",
    "personas_erasure",
    "personas_revision",
    "personas_auditevent",
    "personas_idempotentresponse",
    "personas_apikey",
    "personas_membership",
    "personas_invitation",
    "personas_memory",
    "personas_responsibility",
    "personas_task",
    "personas_taskstep",
    "personas_erasurecounter",
    "personas_eventcounter",
    "personas_event",
    "personas_webhookendpoint",
    "personas_webhookqueue",
    "personas_webhookdelivery",
    "personas_webhookattempt",
    "personas_notificationqueue",
    "personas_notification",
    "personas_notificationpreference",
    "personas_dailystorage",
)


class Migration(migrations.Migration):
    dependencies = [("personas", "0003_append_only")]

    operations = [
        EnableRowLevelSecurity("personas_workspace", "id"),
        *(EnableRowLevelSecurity(table) for table in TABLES),
    ]
