"""The rows of a workspace that was deleted 14 days ago can be removed from append-only tables."""

from django.db import migrations

from core.db.expiry import AllowWorkspaceRemoval


class Migration(migrations.Migration):
    dependencies = [("prompts", "0031_release_cache_prefixes"), ("personas", "0030_removed_workspaces")]

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
                "prompts_ledgerrolloff",
                "prompts_promptversion",
                "prompts_signingkey",
                "prompts_versionpart",
            ],
            days=14,
        )
    ]
