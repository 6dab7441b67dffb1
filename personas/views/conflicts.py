"""Two people saved at once: what the later one is shown."""

from types import SimpleNamespace

from personas.errors import Conflict
from personas.forms.base import RecordForm
from personas.reading import changes_between
from personas.selectors import revisions_of


def conflict_words(conflict: Conflict, form: RecordForm) -> SimpleNamespace:
    """Who saved in between, what they changed, and what the person in front of the screen typed there."""
    revisions = {row.number: row for row in revisions_of(conflict.record)[:200]}
    latest = revisions[conflict.record.revision]
    seen = revisions.get(conflict.expected)
    changes = changes_between(conflict.record, seen.data if seen else {}, latest.data)
    typed = {bound.label: bound.value() for bound in form}
    return SimpleNamespace(
        who=latest.author_label,
        when=latest.at,
        revision=conflict.record.revision,
        changes=[
            SimpleNamespace(label=change.label, theirs=change.after, yours=typed.get(change.label, ""))
            for change in changes
        ],
    )
