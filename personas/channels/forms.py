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
    labels = {"slug": _("Address"), "formatting": _("Formatting rules")}
    help_texts = {
        "slug": _(
            "Bots name it when they fetch, and it never changes: lower-case letters, digits and hyphens."
        ),
        "formatting": _(
            "Told to every agent that speaks here. Left empty, nothing is said about formatting."
        ),
    }
    widgets = {"formatting": forms.Textarea(attrs={"rows": 10})}
    fieldsets = ((_("Channel"), "", ("name", "slug", "formatting")),)
