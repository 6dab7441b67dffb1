"""Form of the quick start."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from personas.models import Agent, Channel, Soul, Workspace
from personas.selectors import list_channels
from personas.ui.action_form import ActionForm

# The channel that is selected at first, if the workspace has it.
FIRST_CHANNEL = "web"


class QuickStartForm(ActionForm):
    """Name, soul and channel of a new agent."""

    name = forms.CharField(
        label=_("Name"),
        max_length=Agent._meta.get_field("name").max_length,
        help_text=_("What your team calls the agent."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "autofocus": True}),
    )
    slug = forms.CharField(
        label=_("Slug"),
        max_length=64,
        required=False,
        help_text=_("Used in API calls. Filled in from the name. Cannot be changed later."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    soul = forms.CharField(
        label=_("Soul"),
        max_length=Soul._meta.get_field("text").max_length,
        required=False,
        strip=False,
        help_text=_("The agent's personality, in Markdown. If empty, the built-in default is used."),
        widget=forms.Textarea(attrs={"rows": 7}),
    )
    channel = forms.ChoiceField(
        label=_("Channel"),
        help_text=_("Where the agent talks to people. You can add more channels later."),
    )

    def __init__(self, data: Any = None, *, workspace: Workspace) -> None:
        super().__init__(data)
        self.channels = {
            channel.slug: channel for channel in list_channels(workspace).filter(archived_at=None)
        }
        field: Any = self.fields["channel"]
        field.choices = [(slug, channel.name) for slug, channel in self.channels.items()]
        field.initial = FIRST_CHANNEL if FIRST_CHANNEL in self.channels else next(iter(self.channels), "")

    def get_channel(self) -> Channel:
        return self.channels[self.cleaned_data["channel"]]

    def get_values(self) -> dict[str, Any]:
        """Return the arguments of `create_agent_with_soul`."""
        names = ("name", "slug", "soul")
        return {name: self.cleaned_data[name] for name in names} | {"channel": self.get_channel()}
