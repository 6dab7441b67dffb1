"""Two people saved at once: what the later one is shown."""

from types import SimpleNamespace
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from personas.errors import Conflict
from personas.records.forms import RecordForm
from personas.records.revision_display import changes_between, item_words
from personas.selectors import revisions_of
from personas.ui.display_names import NOTHING

NOT_ASKED = gettext_lazy("Not on this form: it stays as saved.")


def conflict_words(conflict: Conflict, form: RecordForm) -> SimpleNamespace:
    """Who saved in between, what they changed, and what the person in front of the screen typed there."""
    revisions = {row.number: row for row in revisions_of(conflict.record)[:200]}
    latest = revisions[conflict.record.revision]
    seen = revisions.get(conflict.expected)
    changes = changes_between(conflict.record, seen.data if seen else {}, latest.data)
    return SimpleNamespace(
        who=latest.author_label,
        when=latest.at,
        revision=conflict.record.revision,
        changes=[
            SimpleNamespace(
                label=form[change.name].label if change.name in form.fields else change.label,
                theirs=change.after,
                yours=typed(form.cleaned_data[change.name]) if change.name in form.fields else NOT_ASKED,
            )
            for change in changes
        ],
    )


def typed(value: Any) -> str:
    """What the form holds, in the words a revision would use for it."""
    if isinstance(value, bool):
        return _("Yes") if value else _("No")
    if isinstance(value, list):
        separator = "\n" if value and isinstance(value[0], dict) else ", "
        return separator.join(item_words(item) for item in value) or NOTHING
    if isinstance(value, dict):
        return "\n".join(f"{key}: {said}" for key, said in value.items()) or NOTHING
    return NOTHING if value in (None, "") else str(value)
