"""Form of channels."""

from django import forms
from django.utils.translation import gettext_lazy as _

from personas.models import Channel
from personas.records.forms import RecordForm


class ChannelForm(RecordForm):
    model = Channel
    model_fields = ("slug", "name", "formatting")
    editors = {"formatting": "markdown"}
    fixed = ("slug",)
    labels = {"slug": _("Slug"), "formatting": _("Formatting rules")}
    help_texts = {
        "slug": _("Used in API calls. Cannot be changed later. Use lowercase letters, digits and hyphens."),
        "formatting": _(
            "Included in the prompt of every agent on this channel. If empty, prompts "
            "say nothing about formatting."
        ),
    }
    widgets = {"formatting": forms.Textarea(attrs={"rows": 10})}
    fieldsets = ((_("Channel"), "", ("name", "slug", "formatting")),)
