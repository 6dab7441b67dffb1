"""A skill, written in the browser."""

from typing import Any

from django import forms

from personas.forms.base import RecordChoices, RecordForm
from personas.selectors import agents_of
from skills.models import Skill


class SkillForm(RecordForm):
    model = Skill
    plain = (
        "name",
        "description",
        "body",
        "license",
        "compatibility",
        "allowed_tools",
        "disable_model_invocation",
        "for_all_agents",
    )
    labels = {
        "body": "Instructions",
        "disable_model_invocation": "Only people may start it",
        "for_all_agents": "Give it to every agent",
    }
    help_texts = {
        "name": "Lower-case letters, digits and hyphens, such as release-notes.",
        "description": "What it does and when to use it: all a model sees before it loads the skill.",
        "body": "Markdown, loaded only when the skill is used.",
        "allowed_tools": "Names separated by spaces.",
        "disable_model_invocation": "Leaves it out of the list that models choose from.",
    }
    fieldsets = (
        ("Skill", "", ("name", "description", "body")),
        ("Who has it", "", ("for_all_agents", "agents")),
        (
            "Terms",
            "",
            ("license", "compatibility", "allowed_tools", "metadata", "disable_model_invocation"),
        ),
    )

    agents = RecordChoices(label="Or to these agents")
    metadata = forms.CharField(
        required=False,
        max_length=8_000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="One “key: value” per line.",
    )

    record: Skill | None

    def initial_values(self) -> dict[str, Any]:
        if self.record is None:
            return {}
        lines = [f"{key}: {value}" for key, value in self.record.metadata.items()]
        agents = self.record.snapshot()["agents"]
        return super().initial_values() | {"metadata": "\n".join(lines), "agents": agents}

    def link_fields(self) -> None:
        self.offer("agents", agents_of(self.workspace).prefetch_related(None), self.initial.get("agents"))

    def clean_metadata(self) -> dict[str, str]:
        pairs = [line.partition(":") for line in self.cleaned_data["metadata"].splitlines() if line.strip()]
        for number, (key, colon, _) in enumerate(pairs, start=1):
            if not colon or not key.strip():
                raise forms.ValidationError(f"Line {number} is not “key: value”.")
        keys = [key.strip() for key, _, _ in pairs]
        if twice := {key for key in keys if keys.count(key) > 1}:
            raise forms.ValidationError(f"Said twice: {', '.join(sorted(twice))}.")
        return {key.strip(): value.strip() for key, _, value in pairs}
