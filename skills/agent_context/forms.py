"""Form for an agent's sources, harness, working directory and settings for files and skills."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from personas.models import Agent
from personas.records.forms import RecordChoiceField
from personas.ui.action_form import ActionForm
from skills.agent_context.services import MAX_SOURCES, ContextSettings, SourceUse
from skills.discovery.harnesses import HARNESSES
from skills.models import AgentContext, Source, SourceScope

# Number of empty rows after the chosen sources, and minimum number of rows in total.
EMPTY_ROWS, MIN_ROWS = 1, 2


class SourceRow(NamedTuple):
    """The fields of one source in the form."""

    number: int
    source: forms.BoundField
    scope: forms.BoundField
    location: forms.BoundField
    position: forms.BoundField


class LinesField(forms.CharField):
    """A list of texts, one per line. Empty lines are left out."""

    widget = forms.Textarea

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=False, max_length=10_000, **kwargs)
        self.widget.attrs["rows"] = 3

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def clean(self, value: Any) -> Any:
        text: str = super().clean(value)
        return [line.strip() for line in text.splitlines() if line.strip()]


class ContextForm(ActionForm):
    """Form that sets an agent's own sources, harness, working directory and settings.

    The form initially shows the effective values, which may be inherited from a parent agent. Each source
    has a row of numbered fields, sorted by position: the source with the highest number is read last. A row
    without a source is left out.
    """

    harness = forms.ChoiceField(
        label=_("Discovery rules"),
        choices=[(name, name) for name in HARNESSES],
        help_text=_("Which files are read, and in which order."),
    )
    working_directory = forms.CharField(
        label=_("Working directory"),
        required=False,
        max_length=1_000,
        help_text=_(
            "A path relative to the project root, a path under ~/, or an absolute "
            "path. Dramatis looks for files in this directory and its parent "
            "directories. Defaults to the parent agent's setting, or to the root."
        ),
    )
    has_context_files = forms.BooleanField(label=_("Read context files"), required=False)
    has_skills = forms.BooleanField(label=_("Include skills"), required=False)
    file_names = LinesField(
        label=_("Context file names"),
        help_text=_("One per line, for example AGENTS.md. Defaults to the names in the discovery rules."),
    )
    extra_skill_folders = LinesField(
        label=_("Additional skill folders"),
        help_text=_("One per line: relative to the project's root, below ~/, or absolute."),
    )
    pulled_skills_folder = forms.CharField(
        label=_("Folder for downloaded skills"),
        required=False,
        max_length=1_000,
        help_text=_(
            "The absolute path that “dramatis pull” writes to on the bot's machine. "
            "Prompts refer to it for skills written in Dramatis. If empty, prompts "
            "contain the URL of each skill."
        ),
    )
    revision = forms.IntegerField(widget=forms.HiddenInput, min_value=0)

    def __init__(self, *args: Any, agent: Agent, row: AgentContext | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        uses = list(row.uses.all()) if row else []
        # Keep the current sources among the choices even if they are archived.
        sources = Source.objects.in_workspace(agent.workspace_id).order_by("name", "pk")
        current = sources.filter(pk__in=[use.source_id for use in uses])
        choices = sources.filter(archived_at=None) | current
        self.row_count = min(max(len(uses) + EMPTY_ROWS, MIN_ROWS), MAX_SOURCES)
        for number in range(1, self.row_count + 1):
            use = uses[number - 1] if number <= len(uses) else None
            self.add_row(number, choices, use.source_id if use else None)
            if use:
                self.initial.update({f"scope_{number}": use.scope, f"location_{number}": use.location})

    def add_row(self, number: int, choices: Any, chosen: int | None) -> None:
        source = RecordChoiceField(label=_("Source"), required=False, empty_label=_("None"))
        source.queryset = choices
        self.fields |= {
            f"source_{number}": source,
            f"scope_{number}": forms.ChoiceField(
                label=_("Read as"),
                required=False,
                choices=SourceScope.choices,
                initial=SourceScope.BOTH,
            ),
            f"location_{number}": forms.CharField(
                label=_("Location for bots"),
                required=False,
                max_length=1_000,
                help_text=_("Absolute path. Defaults to the source's location."),
            ),
            f"position_{number}": forms.IntegerField(
                label=_("Order"), required=False, min_value=1, max_value=99, initial=number
            ),
        }
        if chosen:
            self.initial[f"source_{number}"] = chosen

    @property
    def source_rows(self) -> Iterator[SourceRow]:
        for number in range(1, self.row_count + 1):
            names = ("source", "scope", "location", "position")
            yield SourceRow(number, *[self[f"{name}_{number}"] for name in names])

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        chosen = [source for number in self.row_numbers if (source := values.get(f"source_{number}"))]
        for number in self.row_numbers:
            if (source := values.get(f"source_{number}")) and chosen.count(source) > 1:
                self.add_error(f"source_{number}", gettext("Each source can be selected only once."))
        return values

    @property
    def row_numbers(self) -> Sequence[int]:
        return range(1, self.row_count + 1)

    def list_uses(self) -> list[SourceUse]:
        """Return the chosen sources, sorted by position."""
        values = self.cleaned_data
        rows = [number for number in self.row_numbers if values.get(f"source_{number}")]
        rows.sort(key=lambda number: (values.get(f"position_{number}") or number, number))
        return [
            SourceUse(
                values[f"source_{number}"],
                values.get(f"scope_{number}") or SourceScope.BOTH,
                values.get(f"location_{number}", ""),
            )
            for number in rows
        ]

    def build_settings(self) -> ContextSettings:
        values = self.cleaned_data
        return ContextSettings(
            values["has_context_files"],
            values["has_skills"],
            values["file_names"],
            values["extra_skill_folders"],
            values["pulled_skills_folder"],
        )
