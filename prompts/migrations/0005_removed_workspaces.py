"""The rows of a workspace that was deleted 14 days ago can be removed from append-only tables."""

from django.db import migrations

from core.db.expiry import AllowWorkspaceRemoval


class Migration(migrations.Migration):
    dependencies = [("personas", "0003_append_only"), ("prompts", "0004_row_level_security")]

    operations = [
        AllowWorkspaceRemoval(
            tables=[
                "personas_auditevent",
                "personas_revision",
                "prompts_checkpoint",
                "prompts_digestreport",
                "prompts_labelmove",
                "prompts_ledgerblock",
                "prompts_ledgerentry",
                "prompts_ledgerexpiry",
                "prompts_promptversion",
                "prompts_signingkey",
                "prompts_versionpart",
            ],
            days=14,
        ),
    ]
