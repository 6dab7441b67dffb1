"""Row-level security for the tables with a workspace. A later table gets it in the migration that creates it."""

from django.db import migrations

from core.db.row_level_security import EnableRowLevelSecurity

TABLES = (
    "skills_allowedfolder",
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
    dependencies = [("skills", "0001_tables")]

    operations = [
        *(EnableRowLevelSecurity(table) for table in TABLES),
    ]
