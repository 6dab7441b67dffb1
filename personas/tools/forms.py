"""Tools and channels."""

from django import forms
from django.utils.translation import gettext_lazy as _

from personas.models import Channel, Tool
from personas.records.forms import RecordForm


class ToolForm(RecordForm):
    model = Tool
    plain = ("name", "description", "snippet", "guidelines", "parameters", "signature")
    editors = {"guidelines": "plain", "parameters": "yaml"}
    labels = {"snippet": _("One-line snippet"), "parameters": _("Parameters (JSON Schema)")}
    help_texts = {
        "name": _("What a model calls it by, such as read_file."),
        "snippet": _("Shown in tool lists in place of the description."),
        "guidelines": _("One per line; they join the prompt's guidelines while the tool is active."),
        "parameters": _("A JSON object; kept as written."),
        "signature": _("For the ptc layout, such as search(query :string) -> [:map]."),
    }
    fieldsets = (
        (_("Tool"), "", ("name", "description", "snippet")),
        (_("How to use it"), "", ("guidelines",)),
        (_("How to call it"), "", ("parameters", "signature")),
    )


class ChannelForm(RecordForm):
    model = Channel
    plain = ("slug", "name", "formatting")
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
