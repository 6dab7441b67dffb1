"""Forms of comments."""

from django import forms
from django.utils.translation import gettext_lazy as _

from prompts.releases.forms import CommentForm


class LineCommentForm(CommentForm):
    """A comment on a line of a version."""

    line = forms.IntegerField(label=_("Line"), min_value=1, help_text=_("The number of the line."))
    field_order = ("line", "text")
