"""Form of a webhook endpoint."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from personas.api_keys.forms import ScopeChoicesField, list_scope_choices
from personas.api_keys.scopes import list_scope_labels
from personas.errors import InvalidInput
from personas.events.types import EVENT_TYPES
from personas.models import Agent, Channel, WebhookEndpoint, Workspace
from personas.records.forms import build_model_field

FILTER_HELP = _("Leave empty to send events of all types.")
PROMPT_FILTER_HELP = _(
    "Leave empty to send all events. Otherwise, only events for the selected items are sent."
)


class EndpointForm(forms.Form):
    """Name, URL and filters of an endpoint. The filters are chosen from what the workspace has."""

    name = build_model_field(WebhookEndpoint, "name", _("Name"))
    url = build_model_field(WebhookEndpoint, "url", _("URL"))
    types = ScopeChoicesField(
        label=_("Event types"), help_text=FILTER_HELP, choices=[(name, name) for name in EVENT_TYPES]
    )
    agents = ScopeChoicesField(label=_("Agents"), help_text=PROMPT_FILTER_HELP)
    channels = ScopeChoicesField(label=_("Channels"), help_text=PROMPT_FILTER_HELP)
    labels = ScopeChoicesField(label=_("Labels"), help_text=PROMPT_FILTER_HELP)

    def __init__(self, *args: Any, workspace: Workspace, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = {
            "agents": list_scope_choices(Agent, workspace),
            "channels": list_scope_choices(Channel, workspace),
            "labels": [(name, name) for name in list_scope_labels(workspace)],
        }
        for name, values in choices.items():
            field: Any = self.fields[name]
            stored = [value for value in self.initial.get(name, []) if value not in dict(values)]
            field.choices = [*values, *((value, value) for value in stored)]

    def add_service_errors(self, error: InvalidInput) -> None:
        for name, messages in error.errors.items():
            self.add_error(name if name in self.fields else None, list(messages))
