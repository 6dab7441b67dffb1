"""Filter choices of the audit log, compared with the seeded events of every kind."""

from personas.audit.descriptions import AUDIT_KINDS
from personas.models import AuditEvent
from personas.ui.display_names import VERB_LABELS


def test_the_audit_filters_offer_every_kind_and_verb(stage):
    """The choices are fixed and not read from the table, so they must be complete."""
    for workspace in stage.workspaces.values():
        # One event has canaries as kind and verb.
        events = AuditEvent.objects.in_workspace(workspace).exclude(kind__startswith="cnry")
        assert set(events.values_list("kind", flat=True)) <= set(AUDIT_KINDS)
        assert set(events.values_list("verb", flat=True)) <= set(VERB_LABELS)
