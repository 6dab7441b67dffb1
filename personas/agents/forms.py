"""Form of agents."""

from typing import Any, ClassVar, cast

from django import forms
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from personas.models import LAYOUTS, Agent, ReleasePolicy
from personas.records.forms import (
    RecordChoiceField,
    RecordForm,
    RecordMultipleChoiceField,
    build_review_lift_field,
)
from personas.selectors import (
    list_agents,
    list_channels,
    list_identities,
    list_souls,
    list_tools,
    list_user_profiles,
)

LAYOUT_LABELS = {
    "dramatis": _("Dramatis: all sections, stable text first"),
    "opal": _("Opal: six tagged sections for coding agents"),
    "pi": _("Pi: base prompt, project context, skills, date"),
    "moltis": _("Moltis: identity, soul, runtime, tools"),
    "nova": _("Nova: ten tagged sections, each responsibility tagged with its title"),
    "ptc": _("PTC: a program generator with typed tools"),
}

STATED_CHOICES = [
    ("", _("No: the agent is assumed to have file access")),
    ("yes", _("Yes: only those listed below")),
]

# By form field: the URL namespace of the page that creates a record for it, and the text of the link.
CREATE_LINKS = {
    "identity": ("identities", _("New identity")),
    "soul": ("souls", _("New soul")),
    "user_profile": ("user-profiles", _("New user profile")),
}


class AgentForm(RecordForm):
    model = Agent
    model_fields: ClassVar[tuple[str, ...]] = (
        *("slug", "name", "description", "instructions", "working_directory", "directories", "capabilities"),
        *("documentation_main", "documentation_additional", "documentation_examples", "release_policy"),
    )
    editors = {"instructions": "markdown"}
    fixed = ("slug",)
    labels = {
        "slug": _("Slug"),
        "directories": _("Additional directories"),
        "documentation_main": _("Main documentation"),
        "documentation_additional": _("Additional documentation"),
        "documentation_examples": _("Examples"),
    }
    help_texts = {
        "slug": _("Used in API calls. Cannot be changed later. Use lowercase letters, digits and hyphens."),
        "description": _(
            "One line for your team. Appears in prompts only when another agent uses this agent as a tool."
        ),
        "instructions": _("How this agent works, in Markdown."),
        "working_directory": _(
            "The agent's working directory. Dramatis searches it and its parent "
            "directories for context files."
        ),
        "directories": _("Other directories that the agent can read and write. One path per line."),
        "capabilities": _(
            "One name per line. Layouts use only “files” and “persistence”. If "
            "capabilities are limited and the list is empty, the agent has none."
        ),
        "documentation_main": _("A path or URL. Prompts in the pi layout refer to it."),
        "documentation_additional": _("A path or URL."),
        "documentation_examples": _("A path or URL."),
    }
    fieldsets = (
        (
            _("Agent"),
            _("The name shown in lists, and the slug that bots use."),
            ("name", "slug", "description"),
        ),
        (
            _("Persona"),
            _("Shared parts. Editing one changes every agent that uses it."),
            ("identity", "soul", "user_profile"),
        ),
        (_("Work"), "", ("instructions", "working_directory", "directories", "parent")),
        (
            _("Capabilities"),
            _(
                "What the agent can do with its directories. Prompts explain storage only "
                "if the agent has “files” or “persistence”."
            ),
            ("states_capabilities", "capabilities"),
        ),
        (
            _("Documentation"),
            _("Documentation for the software that the agent runs in."),
            ("documentation_main", "documentation_additional", "documentation_examples"),
        ),
        (
            _("Tools and channels"),
            _("The tools the agent can call or plan with, and its channels."),
            ("tools", "planning_tools", "channels"),
        ),
        (
            _("Prompt"),
            _("The prompt layout, and how new versions reach production."),
            ("layout", "release_policy", "reason"),
        ),
    )

    layout = forms.ChoiceField(choices=[(name, LAYOUT_LABELS[name]) for name in LAYOUTS], initial="dramatis")
    identity = RecordChoiceField(required=False, empty_label=_("No identity"))
    soul = RecordChoiceField(required=False, empty_label=_("Built-in default soul"))
    user_profile = RecordChoiceField(required=False, empty_label=_("No user profile"))
    parent = RecordChoiceField(
        required=False, empty_label=_("None (top-level agent)"), label=_("Sub-agent of")
    )
    tools = RecordMultipleChoiceField(label=_("Active tools"))
    planning_tools = RecordMultipleChoiceField(label=_("Planning tools"))
    channels = RecordMultipleChoiceField(label=_("Channels"))
    reason = build_review_lift_field()
    states_capabilities = forms.ChoiceField(
        choices=STATED_CHOICES, required=False, label=_("Limit capabilities?")
    )

    record: Agent | None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        policy = self.record.release_policy if self.record else self.workspace.default_release_policy
        if policy != ReleasePolicy.REVIEWED:
            self.fields.pop("reason", None)

    def initial_values(self) -> dict[str, Any]:
        if self.record is None:
            return {"release_policy": self.workspace.default_release_policy}
        links = self.record.snapshot()
        lists = {name: links[name] for name in ("tools", "planning_tools", "channels")}
        return super().initial_values() | lists | self.get_stated_value()

    def get_stated_value(self) -> dict[str, str]:
        is_stated = self.record is not None and self.record.capabilities is not None
        return {"states_capabilities": "yes" if is_stated else ""}

    def clean_capabilities(self) -> list[str] | None:
        """Return None if the capabilities are not stated. A list with names counts as stated."""
        names: list[str] = self.cleaned_data["capabilities"]
        is_stated = self.data.get(self.add_prefix("states_capabilities")) == "yes"
        return names if names or is_stated else None

    def values(self) -> dict[str, Any]:
        return {name: value for name, value in super().values().items() if name != "states_capabilities"}

    def set_querysets(self) -> None:
        for name, rows in (
            ("identity", list_identities),
            ("soul", list_souls),
            ("user_profile", list_user_profiles),
        ):
            self.set_choices(name, rows(self.workspace), getattr(self.record, name, None))
            self.set_create_link(name)
        others = list_agents(self.workspace).prefetch_related(None)
        if self.record is not None:
            others = others.exclude(pk=self.record.pk)
        self.set_choices("parent", others, getattr(self.record, "parent", None))
        for name, selector in (
            ("tools", list_tools),
            ("planning_tools", list_tools),
            ("channels", list_channels),
        ):
            self.set_choices(name, selector(self.workspace), self.initial.get(name))

    def set_create_link(self, name: str) -> None:
        """Link to the form of a new identity, soul or user profile. After it, this form has it selected."""
        field, (family, label) = cast("RecordChoiceField", self.fields[name]), CREATE_LINKS[name]
        url = reverse(f"{family}:new", args=[self.workspace.slug])
        field.create_url = f"{url}?{urlencode({'agent': self.record.slug})}" if self.record else url
        field.create_label = label

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        both = set(cleaned.get("tools", [])) & set(cleaned.get("planning_tools", []))
        if both:
            names = ", ".join(sorted(tool.name for tool in both))
            self.add_error(
                "planning_tools",
                gettext("These tools are already active and cannot also be planning tools: %(names)s.")
                % {"names": names},
            )
        return cleaned
