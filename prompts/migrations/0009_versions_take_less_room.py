"""Sizes, lockfiles and causes as short text, and no index that another one stands in for."""

import django.db.models.deletion
from django.db import migrations, models

import core.db.fields
from core.db.append_only import AppendOnly
from prompts.ledger.retention_trigger import RemoveAppendOnly

GROWING = ("prompts_promptversion", "prompts_labelmove")


def compact(field):
    return migrations.AlterField("promptversion", field, core.db.fields.CompactJSONField())


def unindexed(model, field, to, related_name, **options):
    link = models.ForeignKey(
        to=to,
        on_delete=django.db.models.deletion.PROTECT,
        related_name=related_name,
        db_index=False,
        **options,
    )
    return migrations.AlterField(model, field, link)


class Migration(migrations.Migration):
    dependencies = [("prompts", "0008_compiler_of_prompts")]

    operations = [
        *map(RemoveAppendOnly, GROWING),
        compact("sizes"),
        compact("lockfile"),
        compact("causes"),
        migrations.RemoveIndex("promptversion", "versions_by_digest"),
        unindexed("promptversion", "prompt", "prompts.agentprompt", "versions"),
        unindexed("labelmove", "prompt", "prompts.agentprompt", "label_moves"),
        unindexed("labelmove", "previous_version", "prompts.promptversion", "+", null=True),
        *map(AppendOnly, GROWING),
    ]
