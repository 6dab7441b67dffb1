"""Form of tools."""

from django.utils.translation import gettext_lazy as _

from personas.models import Tool
from personas.records.forms import RecordChoiceField, RecordForm
from personas.selectors import list_agents


class ToolForm(RecordForm):
    model = Tool
    model_fields = ("name", "description", "snippet", "guidelines", "parameters", "signature")
    editors = {"guidelines": "plain", "parameters": "yaml"}
    labels = {"snippet": _("One-line snippet"), "parameters": _("Parameters (JSON Schema)")}
    help_texts = {
        "name": _(
            "The name that the model uses, such as read_file. Defaults to the agent's "
            "slug if the tool calls an agent."
        ),
        "description": _(
            "If the tool calls an agent, this defaults to the agent's description or "
            "the first sentence of its instructions."
        ),
        "snippet": _("Shown in tool lists instead of the description."),
        "guidelines": _("One per line. Added to the prompt's guidelines while the tool is active."),
        "parameters": _("A JSON object, stored as written."),
        "signature": _(
            "For the ptc layout, for example search(query :string) -> [:map]. "
            "Optional if the tool calls an agent."
        ),
    }
    fieldsets = (
        (_("Tool"), "", ("agent", "name", "description", "snippet")),
        (_("How to use it"), "", ("guidelines",)),
        (_("How to call it"), "", ("parameters", "signature")),
    )

    agent = RecordChoiceField(
        required=False,
        label=_("Calls the agent"),
        empty_label=_("No agent"),
        help_text=_("Makes this agent available to other agents as a tool."),
    )

    record: Tool | None

    def set_querysets(self) -> None:
        # A tool that calls an agent gets a default name.
        self.fields["name"].required = False
        agents = list_agents(self.workspace).prefetch_related(None)
        self.set_choices("agent", agents, self.record.agent if self.record else None)
