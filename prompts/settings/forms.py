"""The form for prompt settings of one level."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from personas.records.forms import RecordChoiceField, RecordForm
from personas.selectors import list_identities, list_souls, list_user_profiles
from prompts.models import PromptSettings

NATIVE_TOOLS_CHOICES = [
    ("", _("As the level before says")),
    ("yes", _("Yes, as definitions")),
    ("no", _("No, in the text")),
]
PERSONA_FIELDS = ("identity", "soul", "user_profile")


class PromptSettingsForm(RecordForm):
    model = PromptSettings
    model_fields = ("mission", "entry", "mode", "total_characters", "token_budget")
    labels = {
        "entry": _("Entry point"),
        "total_characters": _("Most characters"),
        "token_budget": _("Token budget"),
    }
    help_texts = {
        "mission": _("For the ptc layout: the task, with {{placeholders}}."),
        "entry": _("For the moltis layout: how much of it is built."),
        "mode": _("For the ptc layout: one program, or many turns."),
        "total_characters": _("Longer prompts are cut, least important part first."),
        "token_budget": _("Nothing is cut for it; what passes it is marked."),
    }
    fieldsets = (
        (_("Persona"), _("For agents that choose none of their own."), PERSONA_FIELDS),
        (_("Shape"), "", ("native_tools", "entry", "mode", "mission")),
        (_("Size"), "", ("total_characters", "token_budget")),
    )

    identity = RecordChoiceField(required=False, empty_label=_("As the level before says"))
    soul = RecordChoiceField(required=False, empty_label=_("As the level before says"))
    user_profile = RecordChoiceField(required=False, empty_label=_("As the level before says"))
    native_tools = forms.ChoiceField(
        choices=NATIVE_TOOLS_CHOICES, required=False, label=_("Tools go to the provider as definitions")
    )

    record: PromptSettings | None

    def __init__(self, *args: Any, is_agent: bool = False, **kwargs: Any) -> None:
        self.is_agent = is_agent
        super().__init__(*args, **kwargs)

    def initial_values(self) -> dict[str, Any]:
        values = super().initial_values()
        native_tools = values.get("native_tools")
        return values | {"native_tools": "" if native_tools is None else ("yes" if native_tools else "no")}

    def set_querysets(self) -> None:
        if self.is_agent:
            # The persona of an agent is chosen on the agent itself.
            for name in PERSONA_FIELDS:
                del self.fields[name]
            return
        for name, rows in zip(PERSONA_FIELDS, (list_identities, list_souls, list_user_profiles), strict=True):
            self.set_choices(name, rows(self.workspace), getattr(self.record, name, None))

    def clean_native_tools(self) -> bool | None:
        return {"yes": True, "no": False}.get(self.cleaned_data["native_tools"])
