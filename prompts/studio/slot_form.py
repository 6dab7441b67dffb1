"""Trial slot values in the Studio, filled into the prompt by the same code that serves prompts."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from core.timezones import validate_timezone
from personas.errors import InvalidInput
from personas.models import Agent, Workspace
from prompts.assembly.errors import AssemblyError
from prompts.assembly.json_codec import parse_dataclass
from prompts.assembly.runtime_lines import HOST_KEYS, KNOWN_FACTS, SANDBOX_KEYS
from prompts.assembly.segments import Segment
from prompts.assembly.slots import Slots, fill_segments
from prompts.serving.slot_values import fill_clock, find_task_json, normalize_slots

SANDBOX_PREFIX = "sandbox."
BOOLEAN_VALUES: dict[str, Any] = {"true": True, "false": False}


class SlotForm(forms.Form):
    """Trial values for the slots of a prompt; without values the preview shows the placeholders."""

    prefix = "slot"
    fill = forms.BooleanField(
        required=False,
        label=gettext_lazy("Preview as served"),
        help_text=gettext_lazy("The values below replace the highlighted text."),
    )
    now = forms.DateTimeField(
        required=False,
        label=gettext_lazy("Date and time"),
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        help_text=gettext_lazy("In your time zone. Defaults to now."),
    )
    timezone = forms.CharField(
        required=False,
        max_length=64,
        label=gettext_lazy("Time zone of the call"),
        validators=[validate_timezone],
        help_text=gettext_lazy(
            "For example Europe/Vienna. Defaults to the time zone in the user profile, or to UTC."
        ),
    )
    task = forms.IntegerField(
        required=False, min_value=1, max_value=2**31 - 1, label=gettext_lazy("Task number")
    )
    is_background = forms.BooleanField(
        required=False, label=gettext_lazy("Background call: no user reads the response")
    )
    facts = forms.CharField(
        required=False,
        max_length=4_000,
        label=gettext_lazy("Runtime values"),
        widget=forms.Textarea(attrs={"rows": 3}),
    )

    def __init__(self, data: Any, *, workspace: Workspace, agent: Agent) -> None:
        super().__init__(data)
        self.workspace, self.agent = workspace, agent
        known = ", ".join([*HOST_KEYS[:4], f"{SANDBOX_PREFIX}{SANDBOX_KEYS[1]}"])
        self.fields["facts"].help_text = _("One name=value per line, for example %(names)s.") % {
            "names": known
        }

    def clean_facts(self) -> dict[str, dict[str, Any]]:
        facts: dict[str, dict[str, Any]] = {"host": {}, "sandbox": {}}
        for number, line in enumerate(self.cleaned_data["facts"].splitlines(), start=1):
            name, separator, value = map(str.strip, line.partition("="))
            if not line.strip():
                continue
            if not separator or not name:
                raise forms.ValidationError(
                    _("Line %(number)d must have the form name=value.") % {"number": number}
                )
            group = "sandbox" if name.startswith(SANDBOX_PREFIX) else "host"
            key = name.removeprefix(SANDBOX_PREFIX)
            if key not in KNOWN_FACTS[group]:
                names = [*KNOWN_FACTS["host"], *(f"{SANDBOX_PREFIX}{one}" for one in SANDBOX_KEYS)]
                message = _("“%(name)s” is not a known name. Known names: %(known)s.")
                raise forms.ValidationError(message % {"name": name[:80], "known": ", ".join(names)})
            facts[group][key] = BOOLEAN_VALUES.get(value.lower(), value)
        return facts

    def clean_task(self) -> dict[str, Any] | None:
        number = self.cleaned_data["task"]
        if number is None:
            return None
        task = find_task_json(self.workspace, self.agent.slug, number)
        if task is None:
            raise forms.ValidationError(_("This agent has no task with this number."))
        return task

    def get_slot_values(self) -> dict[str, Any]:
        """Return the slot values in the format that the render endpoint takes as request body."""
        cleaned = self.cleaned_data
        facts = cleaned["facts"]
        values = {
            "now": cleaned["now"].isoformat() if cleaned["now"] else None,
            "timezone": cleaned["timezone"],
            "task": cleaned["task"],
            "is_background": cleaned["is_background"],
            **facts,
        }
        return {name: value for name, value in values.items() if value}

    @property
    def has_input(self) -> bool:
        """Whether the form is valid and has `fill` checked or a slot value."""
        return self.is_valid() and bool(self.cleaned_data["fill"] or self.get_slot_values())


def fill_form_slots(segments: Sequence[Segment], form: SlotForm) -> tuple[Segment, ...]:
    """Fill the slots of the segments as serving does; on an error, add it to the form and fill nothing."""
    zone = next((zone for segment in segments if (zone := (segment.given or {}).get("timezone"))), "")
    try:
        slots, _facts = normalize_slots(
            fill_clock(parse_dataclass(Slots, form.get_slot_values()), timezone.now(), zone)
        )
    except (InvalidInput, AssemblyError) as error:
        form.add_error(None, error.message)
        return tuple(segments)
    return fill_segments(segments, slots)
