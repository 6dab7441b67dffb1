"""The words of the log, asked of the stage that has an event of every kind."""

from personas.audit.descriptions import AUDIT_KINDS
from personas.models import AuditEvent
from personas.ui.display_names import VERB_LABELS


def test_the_kinds_and_verbs_of_the_log_can_all_be_chosen(stage):
    """The table is not asked which it holds, so the choices must be whole."""
    for workspace in stage.workspaces.values():
        # One event has a canary in every word.
        seen = AuditEvent.objects.in_workspace(workspace).exclude(kind__startswith="cnry")
        assert set(seen.values_list("kind", flat=True)) <= set(AUDIT_KINDS)
        assert set(seen.values_list("verb", flat=True)) <= set(VERB_LABELS)
