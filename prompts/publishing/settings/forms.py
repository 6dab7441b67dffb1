"""The form for prompt settings of one level."""

from typing import Any, cast

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.db.line_lists import split_lines
from personas.records.forms import RecordChoiceField, RecordForm
from personas.selectors import list_identities, list_souls, list_user_profiles
from prompts.models import PromptSettings
from prompts.publishing.settings.models import ENTRY_CHOICES, MODE_CHOICES

INHERITED_LABEL = _("Inherited")
# Replaces INHERITED_LABEL on the level of the workspace, which inherits from no other level.
DEFAULT_LABEL = _("Default")
NATIVE_TOOLS_CHOICES = [
    ("", INHERITED_LABEL),
    ("yes", _("Yes, as definitions")),
    ("no", _("No, listed in the prompt text")),
]
OMIT_REFERENCE_CHOICES = [("", INHERITED_LABEL), ("yes", _("Yes, leave it out")), ("no", _("No, include it"))]
PERSONA_FIELDS = ("identity", "soul", "user_profile")
YES_NO_FIELDS = ("native_tools", "omit_reference")


class SectionLimitsField(forms.CharField):
    """One limit per line: the name of a section, a colon and a number of characters."""

    widget = forms.Textarea

    def widget_attrs(self, widget: forms.Widget) -> dict[str, Any]:
        return super().widget_attrs(widget) | {"rows": 4}

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return "\n".join(f"{name}: {limit}" for name, limit in sorted(value.items()))

    def clean(self, value: Any) -> dict[str, int]:
        limits: dict[str, int] = {}
        for line in split_lines(super().clean(value)):
            name, _colon, number = (part.strip() for part in line.partition(":"))
            if not (number.isascii() and number.isdecimal() and len(number) < 11):
                message = gettext(
                    "“%(line)s” is not a valid limit. Use the format memories: 2000, one limit per line."
                )
                raise ValidationError(message % {"line": line[:80]})
            if name in limits:
                raise ValidationError(
                    gettext("“%(name)s” has two limits. Remove one of them.") % {"name": name}
                )
            limits[name] = int(number)
        return limits


class PromptSettingsForm(RecordForm):
    model = PromptSettings
    model_fields = (
        *("mission", "signature", "sample_data", "hidden", "entry", "mode", "total_characters"),
        *("token_budget", "per_file", "all_files", "list_sample", "string_truncate"),
    )
    editors = {"mission": "markdown", "sample_data": "yaml", "signature": "plain"}
    labels = {
        "entry": _("Entry point"),
        "signature": _("Data signature"),
        "sample_data": _("Sample data (JSON)"),
        "hidden": _("Hidden fields"),
        "total_characters": _("Maximum characters"),
        "token_budget": _("Token budget"),
        "per_file": _("Maximum characters per file"),
        "all_files": _("Maximum characters in all files"),
        "list_sample": _("Items per list in samples"),
        "string_truncate": _("Characters per text value in samples"),
    }
    help_texts = {
        "mission": _("Only for the ptc layout. The task, with {{placeholders}}."),
        "signature": _(
            "Types of the data and the result, such as (user_id :int) -> {count "
            ":int}. Dramatis adds the result type at the end of the mission."
        ),
        "sample_data": _(
            "A JSON object, stored as written. Its values fill placeholders and the data inventory."
        ),
        "hidden": _(
            "One field name per line. The values of these fields, and of fields whose "
            "names start with _, are never shown."
        ),
        "entry": _("Only for the moltis layout. Determines how much of the prompt Dramatis builds."),
        "mode": _(
            "Only for the ptc layout. “Single turn” runs one program; “Agent” runs over several turns."
        ),
        "total_characters": _(
            "Longer prompts are truncated, starting with the largest section that can be shortened."
        ),
        "token_budget": _("Larger prompts are marked as over budget, but not truncated."),
        "per_file": _("Longer context files are truncated. Default: 20,000."),
        "all_files": _("Context files are truncated beyond this total. Default: 60,000."),
        "list_sample": _("Items shown per list in the data inventory. Default: 3."),
        "string_truncate": _("Longer text values are truncated in the data inventory. Default: 500."),
    }
    fieldsets = (
        (
            _("Persona"),
            _("Used for agents without their own identity, soul or user profile."),
            PERSONA_FIELDS,
        ),
        (_("Format"), "", ("native_tools", "entry", "mode")),
        (_("Mission and data"), "", ("mission", "signature", "sample_data", "hidden")),
        (_("Size"), "", ("total_characters", "token_budget", "per_file", "all_files", "section_limits")),
        (_("Data inventory and reference"), "", ("list_sample", "string_truncate", "omit_reference")),
    )

    identity = RecordChoiceField(required=False, empty_label=INHERITED_LABEL)
    soul = RecordChoiceField(required=False, empty_label=INHERITED_LABEL)
    user_profile = RecordChoiceField(required=False, empty_label=INHERITED_LABEL)
    native_tools = forms.ChoiceField(
        choices=NATIVE_TOOLS_CHOICES, required=False, label=_("Send tools to the provider as definitions")
    )
    omit_reference = forms.ChoiceField(
        choices=OMIT_REFERENCE_CHOICES,
        required=False,
        label=_("Leave out the language reference"),
        help_text=_("Only for the ptc layout. Use this if the model already knows the language."),
    )
    section_limits = SectionLimitsField(
        required=False,
        label=_("Maximum characters per section"),
        help_text=_("One per line, such as memories: 2000. Use the layout's section names."),
    )

    record: PromptSettings | None

    def __init__(
        self, *args: Any, is_agent: bool | None = None, is_workspace: bool = False, **kwargs: Any
    ) -> None:
        record = kwargs.get("record")
        self.is_agent = is_agent if is_agent is not None else record is not None and record.level == "agent"
        self.is_workspace = is_workspace
        super().__init__(*args, **kwargs)
        for name, choices in (("entry", ENTRY_CHOICES), ("mode", MODE_CHOICES)):
            cast("forms.ChoiceField", self.fields[name]).choices = [("", INHERITED_LABEL), *choices]
        if self.is_workspace:
            self.set_default_labels()

    def set_default_labels(self) -> None:
        """Call the empty choice “Default”: nothing is inherited at the level of the workspace."""
        for name in (*PERSONA_FIELDS, *YES_NO_FIELDS, "entry", "mode"):
            field = cast("Any", self.fields[name])
            if name in PERSONA_FIELDS:
                field.empty_label = DEFAULT_LABEL
            else:
                field.choices = [("", DEFAULT_LABEL), *list(field.choices)[1:]]

    def initial_values(self) -> dict[str, Any]:
        values = super().initial_values()
        return values | {name: format_yes_no(values.get(name)) for name in YES_NO_FIELDS}

    def set_querysets(self) -> None:
        if self.is_agent:
            # The persona of an agent is chosen on the agent itself.
            for name in PERSONA_FIELDS:
                del self.fields[name]
            return
        for name, rows in zip(PERSONA_FIELDS, (list_identities, list_souls, list_user_profiles), strict=True):
            self.set_choices(name, rows(self.workspace), getattr(self.record, name, None))

    def clean_native_tools(self) -> bool | None:
        return parse_yes_no(self.cleaned_data["native_tools"])

    def clean_omit_reference(self) -> bool | None:
        return parse_yes_no(self.cleaned_data["omit_reference"])


def format_yes_no(value: bool | None) -> str:
    return "" if value is None else "yes" if value else "no"


def parse_yes_no(value: str) -> bool | None:
    return {"yes": True, "no": False}.get(value)
