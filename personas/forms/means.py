"""Tools and channels."""

from django import forms

from personas.forms.base import RecordForm
from personas.models import Channel, Tool


class ToolForm(RecordForm):
    model = Tool
    plain = ("name", "description", "snippet", "guidelines", "parameters", "signature")
    editors = {"guidelines": "plain", "parameters": "yaml"}
    labels = {"snippet": "One-line snippet", "parameters": "Parameters (JSON Schema)"}
    help_texts = {
        "name": "What a model calls it by, such as read_file.",
        "snippet": "Shown in tool lists in place of the description.",
        "guidelines": "One per line; they join the prompt's guidelines while the tool is active.",
        "parameters": "A JSON object; kept as written.",
        "signature": "For the ptc layout, such as search(query :string) -> [:map].",
    }
    fieldsets = (
        ("Tool", "", ("name", "description", "snippet")),
        ("How to use it", "", ("guidelines",)),
        ("How to call it", "", ("parameters", "signature")),
    )


class ChannelForm(RecordForm):
    model = Channel
    plain = ("slug", "name", "formatting")
    editors = {"formatting": "markdown"}
    fixed = ("slug",)
    labels = {"slug": "Address", "formatting": "Formatting rules"}
    help_texts = {
        "slug": "Bots name it when they fetch, and it never changes: lower-case letters, digits and hyphens.",
        "formatting": "Told to every agent that speaks here. Left empty, nothing is said about formatting.",
    }
    widgets = {"formatting": forms.Textarea(attrs={"rows": 10})}
    fieldsets = (("Channel", "", ("name", "slug", "formatting")),)
