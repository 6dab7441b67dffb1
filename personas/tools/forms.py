"""Form of tools."""

from django.utils.translation import gettext_lazy as _

from personas.models import Tool
from personas.records.forms import RecordForm


class ToolForm(RecordForm):
    model = Tool
    model_fields = ("name", "description", "snippet", "guidelines", "parameters", "signature")
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
