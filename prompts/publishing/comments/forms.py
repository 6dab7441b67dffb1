"""Forms of comments."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from core.text.shorten import shorten_text
from personas.ui.action_form import ActionForm

MAX_LINE_LABEL = 80


class CommentForm(ActionForm):
    """A comment, or the reason of a request for changes."""

    text = forms.CharField(label=_("Comment"), max_length=4_000, widget=forms.Textarea(attrs={"rows": 3}))


class LineCommentForm(CommentForm):
    """A comment on a line of a version. `lines` are numbers and texts to choose from, `line` is chosen."""

    line = forms.IntegerField(label=_("Line"), min_value=1)
    field_order = ("line", "text")

    def __init__(self, data: Any = None, *, lines: Sequence[tuple[int, str]] = (), line: int = 0) -> None:
        super().__init__(data)
        labels = [(number, f"{number}: {shorten_text(text, MAX_LINE_LABEL)}") for number, text in lines]
        self.fields["line"].widget = forms.Select(choices=labels) if lines[1:] else forms.HiddenInput()
        if lines:
            self.fields["line"].initial = line if line in dict(lines) else lines[0][0]
