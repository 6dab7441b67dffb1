from django.db import migrations

from core.db.row_level_security import ReplaceWorkspacePolicy

TABLES = (
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
    "skills_agentsource",
)


class Migration(migrations.Migration):
    # One table after the other: none is locked while another is waited for.
    atomic = False

    dependencies = [("prompts", "0014_row_security"), ("skills", "0009_file_ctime")]

    operations = [ReplaceWorkspacePolicy(table) for table in TABLES]
