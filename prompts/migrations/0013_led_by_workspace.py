"""Versions are found by digest within their workspace; prompts and labels get a key with it in front."""

from django.db import migrations, models
from django.db.models import UniqueConstraint

from core.db.online_migrations import AddIndexOnline, AddUniqueOnline
from personas.workspaces.models import slug_validator


class Migration(migrations.Migration):
    # Begun again after a failure, every step below finds or removes what it left.
    atomic = False

    dependencies = [("prompts", "0012_ledger_by_month")]

    operations = [
        AddIndexOnline(
            "promptversion",
            models.Index(fields=["workspace", "digest"], name="versions_by_digest"),
        ),
        migrations.RemoveIndex("promptversion", "versions_by_beginning"),
        AddUniqueOnline(
            "agentprompt", UniqueConstraint(fields=["workspace", "id"], name="prompts_by_workspace")
        ),
        AddUniqueOnline(
            "promptlabel", UniqueConstraint(fields=["workspace", "id"], name="labels_by_workspace")
        ),
        migrations.AlterField(
            "promptlabel",
            "name",
            models.SlugField(max_length=40, db_index=False, validators=[slug_validator]),
        ),
        migrations.AlterField(
            "labelrule", "name", models.SlugField(max_length=40, db_index=False, validators=[slug_validator])
        ),
    ]
