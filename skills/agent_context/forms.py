"""Form for an agent's source, harness and working directory."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from personas.models import Agent
from personas.records.forms import RecordChoiceField
from personas.ui.action_form import ActionForm
from skills.discovery.harnesses import HARNESSES
from skills.models import Source


class ContextForm(ActionForm):
    """Form that sets an agent's own source, harness and working directory.

    The form initially shows the effective source and harness, which may be inherited from a parent agent.
    """

    source = RecordChoiceField(label=_("Source"), required=False, empty_label=_("None: it reads no files"))
    harness = forms.ChoiceField(
        label=_("Rule set"),
        choices=[(name, name) for name in HARNESSES],
        help_text=_("Which files count, and in which order."),
    )
    working_directory = forms.CharField(
        label=_("Working directory"),
        required=False,
        max_length=1_000,
        help_text=_(
            "Below the source’s root; files are looked for from here upwards. Empty: the root, or what "
            "its parent has."
        ),
    )
    revision = forms.IntegerField(widget=forms.HiddenInput, min_value=0)

    def __init__(self, *args: Any, agent: Agent, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        rows = Source.objects.in_workspace(agent.workspace_id).order_by("label", "pk")
        chosen = self.initial.get("source")
        # Keep the current source among the choices even if it is archived. Only its id is needed for this,
        # so the source is not loaded.
        current = Source(pk=chosen) if chosen else None
        self.fields["source"].set_choices(rows, current)  # type: ignore[attr-defined]  # a RecordChoice
