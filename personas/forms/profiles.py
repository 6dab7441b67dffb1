"""Whom agents speak to."""

from django import forms

from personas.forms.base import RecordForm
from personas.models import UserProfile
from personas.timezones import timezone_names


class UserProfileForm(RecordForm):
    model = UserProfile
    plain = ("label", "name", "timezone", "location", "notes", "extra")
    editors = {"notes": "markdown", "extra": "yaml"}
    labels = {"extra": "Other front matter"}
    help_texts = {
        "label": "What your team calls this profile in lists.",
        "name": "What the agent should call the person.",
        "notes": "Markdown: habits, preferences, what to be careful about.",
        "extra": "YAML keys that USER.md carries besides these; kept as written.",
    }
    fieldsets = (
        ("Person", "Whom the agent serves.", ("label", "name", "timezone", "location")),
        ("Notes", "", ("notes",)),
        ("USER.md", "", ("extra",)),
    )

    def link_fields(self) -> None:
        names = [("", "Unknown"), *((name, name) for name in timezone_names())]
        self.fields["timezone"] = forms.ChoiceField(choices=names, required=False)
