"""Edit conflicts (optimistic locking): the comparison shown when another user saved first."""

from types import SimpleNamespace
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from personas.errors import EditConflict
from personas.records.forms import RecordForm
from personas.records.revision_display import compare_revisions, format_list_item
from personas.selectors import list_revisions
from personas.ui.display_names import EMPTY_VALUE_DISPLAY

NOT_ON_FORM = gettext_lazy("This field is not on the form. Its saved value is kept.")


def describe_conflict(conflict: EditConflict, form: RecordForm) -> SimpleNamespace:
    """Describe an edit conflict: who saved the latest revision, when, and which fields it changed.

    Each changed field has the value of the latest revision and the value of the submitted form.
    """
    revisions = {row.number: row for row in list_revisions(conflict.record)[:200]}
    latest = revisions[conflict.record.revision]
    base = revisions.get(conflict.expected)
    changes = compare_revisions(conflict.record, base.data if base else {}, latest.data)
    return SimpleNamespace(
        who=latest.author_label,
        when=latest.at,
        revision=conflict.record.revision,
        changes=[
            SimpleNamespace(
                label=form[change.name].label if change.name in form.fields else change.label,
                theirs=change.after,
                yours=format_form_value(form.cleaned_data[change.name])
                if change.name in form.fields
                else NOT_ON_FORM,
            )
            for change in changes
        ],
    )


def format_form_value(value: Any) -> str:
    """Format a form value the way `revision_display` formats stored values."""
    if isinstance(value, bool):
        return _("Yes") if value else _("No")
    if isinstance(value, list):
        separator = "\n" if value and isinstance(value[0], dict) else ", "
        return separator.join(format_list_item(item) for item in value) or EMPTY_VALUE_DISPLAY
    if isinstance(value, dict):
        return "\n".join(f"{key}: {entry}" for key, entry in value.items()) or EMPTY_VALUE_DISPLAY
    return EMPTY_VALUE_DISPLAY if value in (None, "") else str(value)
