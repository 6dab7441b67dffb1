"""Revisions and audit events can be added, never changed."""

from django.db import migrations

from core.db.append_only import AppendOnly


class Migration(migrations.Migration):
    dependencies = [("personas", "0001_initial")]

    operations = [AppendOnly("personas_revision"), AppendOnly("personas_auditevent")]
