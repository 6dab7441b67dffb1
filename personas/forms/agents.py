"""Agents and the parts of a persona."""

from typing import Any

from django import forms

from personas.forms.base import RecordChoice, RecordChoices, RecordForm
from personas.models import LAYOUTS, Agent, Identity, Soul
from personas.selectors import agents_of, channels_of, identities_of, profiles_of, souls_of, tools_of

LAYOUT_WORDS = {
    "dramatis": "Dramatis: everything, slow facts first",
    "opal": "Opal: six tagged sections for coding agents",
    "pi": "Pi: base prompt, project context, skills, date",
    "moltis": "Moltis: identity, soul, runtime, tools",
    "nova": "Nova: ten tagged sections, responsibilities by title",
    "ptc": "PTC: a program generator with typed tools",
}


class IdentityForm(RecordForm):
    model = Identity
    plain = ("label", "name", "emoji", "creature", "vibe", "text", "extra")
    editors = {"text": "markdown", "extra": "yaml"}
    labels = {"text": "Free text", "creature": "Creature", "extra": "Other front matter"}
    help_texts = {
        "label": "What your team calls this identity in lists.",
        "name": "What the agent calls itself.",
        "emoji": "Follows the name: “Your name is Mira 🦊.”",
        "creature": "Completes “You are a …”.",
        "vibe": "Completes “Your vibe: …”.",
        "text": "Markdown, for all that the fields above cannot say.",
        "extra": "YAML keys that IDENTITY.md carries besides these; kept as written.",
    }
    fieldsets = (
        ("Identity", "Who the agent is, in a few words.", ("label", "name", "emoji", "creature", "vibe")),
        ("In its own words", "", ("text",)),
        ("IDENTITY.md", "", ("extra",)),
    )


class SoulForm(RecordForm):
    model = Soul
    plain = ("label", "text")
    editors = {"text": "markdown"}
    help_texts = {
        "label": "What your team calls this soul in lists.",
        "text": "Markdown. Left empty, agents get the built-in default soul.",
    }
    fieldsets = (("Soul", "A personality that agents can share.", ("label", "text")),)


class AgentForm(RecordForm):
    model = Agent
    plain = ("slug", "name", "description", "instructions", "working_directory", "release_policy")
    editors = {"instructions": "markdown"}
    fixed = ("slug",)
    labels = {"slug": "Address"}
    help_texts = {
        "slug": "Bots fetch by it, and it never changes: lower-case letters, digits and hyphens.",
        "description": "One line for your team; it never reaches a prompt.",
        "instructions": "Markdown: how this agent works.",
        "working_directory": "Where the agent works; context files are looked for from here upwards.",
    }
    fieldsets = (
        ("Agent", "What your team calls it and where bots find it.", ("name", "slug", "description")),
        (
            "Persona",
            "Shared parts: one edit there changes every agent that uses it.",
            ("identity", "soul", "user_profile"),
        ),
        ("Work", "", ("instructions", "working_directory", "parent")),
        ("Means", "What it may call, and where it speaks.", ("tools", "planning_tools", "channels")),
        (
            "Prompt",
            "How the parts are put together, and how a new version goes out.",
            ("layout", "release_policy"),
        ),
    )

    layout = forms.ChoiceField(choices=[(name, LAYOUT_WORDS[name]) for name in LAYOUTS], initial="dramatis")
    identity = RecordChoice(required=False, empty_label="No identity")
    soul = RecordChoice(required=False, empty_label="The built-in default soul")
    user_profile = RecordChoice(required=False, empty_label="Nobody in particular")
    parent = RecordChoice(required=False, empty_label="None: a top-level agent", label="Sub-agent of")
    tools = RecordChoices(label="Active tools")
    planning_tools = RecordChoices(label="Tools for planning only")
    channels = RecordChoices(label="Channels")

    record: Agent | None

    def initial_values(self) -> dict[str, Any]:
        if self.record is None:
            return {}
        links = self.record.snapshot()
        lists = {name: links[name] for name in ("tools", "planning_tools", "channels")}
        return super().initial_values() | lists

    def link_fields(self) -> None:
        for name, rows in (("identity", identities_of), ("soul", souls_of), ("user_profile", profiles_of)):
            self.offer(name, rows(self.workspace), getattr(self.record, name, None))
        others = agents_of(self.workspace).prefetch_related(None)
        if self.record is not None:
            others = others.exclude(pk=self.record.pk)
        self.offer("parent", others, getattr(self.record, "parent", None))
        for name, means in (("tools", tools_of), ("planning_tools", tools_of), ("channels", channels_of)):
            self.offer(name, means(self.workspace), self.initial.get(name))

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        both = set(cleaned.get("tools", [])) & set(cleaned.get("planning_tools", []))
        if both:
            names = ", ".join(sorted(tool.name for tool in both))
            self.add_error("planning_tools", f"Already active, so not only for planning: {names}.")
        return cleaned
